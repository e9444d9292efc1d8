use std::sync::Arc;

use hlorank_graph::{Graph, Task};

use crate::{
    call::CallError,
    graphs::Warning,
    metrics::{Metrics, ModelSeries},
    model::{Target, TargetMatch},
    registry::{Registry, SelectError, Selection, VersionSelector},
    telemetry::CallRecord,
};

/// Selects the models of calls.
pub(crate) struct ModelSelection {
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
}

/// Which model a call asks for.
pub(crate) struct WantedModel {
    /// Its name; empty for the one that suits the target best, or else the default one.
    pub(crate) name: String,
    pub(crate) version: VersionSelector,
    /// What the configurations are chosen for, if the call names its compiler.
    pub(crate) target: Option<Target>,
    /// Whether the call names a target, with or without a compiler.
    pub(crate) names_target: bool,
}

/// The versions of a model that may answer a call. The graph decides which of them does.
pub(crate) struct SelectedModel {
    pub(super) selection: Selection,
    pub(super) choice: ModelChoice,
}

/// What the choice of a model means for its call.
pub(super) struct ModelChoice {
    pub(super) series: Arc<ModelSeries>,
    /// How well it suits the target of the call.
    pub(super) suits: TargetMatch,
    /// What is unusual about the model and the target.
    pub(super) warning: Option<Warning>,
}

/// What metrics call the model of calls that no model answers.
const NO_MODEL: &str = "none";

impl ModelSelection {
    /// Selects among the models of a registry.
    pub(crate) fn new(registry: Arc<Registry>, metrics: Arc<Metrics>) -> Self {
        Self { registry, metrics }
    }

    /// Selects the model of a call.
    pub(crate) fn select(
        &self,
        wanted: &WantedModel,
        task: Task,
        record: &CallRecord,
    ) -> Result<SelectedModel, CallError> {
        let WantedModel { name, version, .. } = wanted;
        let target = wanted.target.as_ref();
        let selection = self
            .registry
            .serving()
            .select(name, version, target, task)?;
        let mut selected = self.selected(selection, wanted, record);
        if name.is_empty() && target.is_none() {
            selected.choice.warning = self.unknown_target(&selected.selection, task);
        }
        Ok(selected)
    }

    /// Selects the model of a call about a graph.
    pub(crate) fn select_for(
        &self,
        wanted: &WantedModel,
        graph: &Graph,
        record: &CallRecord,
    ) -> Result<SelectedModel, CallError> {
        let Some(features) = graph.feature_graph() else {
            return self.select(wanted, graph.task(), record);
        };
        let WantedModel { name, version, .. } = wanted;
        let target = wanted.target.as_ref();
        let set = features.set();
        let serving = self.registry.serving();
        let selection = serving.select_for_set(name, version, target, set);
        // A call that insists on a version wants that one or none.
        let is_any = *version == VersionSelector::Any;
        let described = features.description().filter(|_| is_any);
        let selection = match (selection, described) {
            // A call that describes its feature set can be answered from measurements alone.
            (Err(SelectError::UnknownFeatureSet(_)), Some(set)) => {
                Selection::absent(Arc::clone(set))
            }
            (selection, _) => selection?,
        };
        Ok(self.selected(selection, wanted, record))
    }

    fn selected(
        &self,
        selection: Selection,
        wanted: &WantedModel,
        record: &CallRecord,
    ) -> SelectedModel {
        let name = match selection.name() {
            "" => NO_MODEL,
            name => name,
        };
        let series = self.metrics.model(name);
        record.selected(&series);
        let target = wanted.target.as_ref();
        let suits = match target {
            Some(target) => target.suited_by(selection.targets()),
            // A target that names no compiler is not one that the model was trained for.
            None if wanted.names_target && !selection.targets().is_empty() => {
                TargetMatch::OtherCompiler
            }
            None => TargetMatch::Unknown,
        };
        let warning = target.and_then(|target| other_target(&selection, target, suits));
        SelectedModel {
            selection,
            choice: ModelChoice {
                series,
                suits,
                warning,
            },
        }
    }

    /// Warns that a call did not say which of several compilers it is about.
    fn unknown_target(&self, selection: &Selection, task: Task) -> Option<Warning> {
        let compilers = self.registry.serving().compilers(task);
        if compilers.len() < 2 {
            return None;
        }
        let compilers: Vec<String> = compilers.into_iter().collect();
        let message = format!(
            "the {task} models here were trained for the compilers {}, but the call names no target with a compiler, so `{}` \
             answered; set model.target to HARDWARE, COMPILER VERSION, FLAGS",
            compilers.join(", "),
            selection.name()
        );
        Some(Warning {
            reason: "TARGET_UNKNOWN",
            message,
        })
    }
}

/// Warns that a model was trained for other targets than that of a call.
fn other_target(selection: &Selection, target: &Target, suits: TargetMatch) -> Option<Warning> {
    let consequence = consequence(suits)?;
    let trained = selection.targets().iter();
    let trained: Vec<String> = trained.map(Target::to_string).collect();
    Some(Warning {
        reason: "MODEL_FOR_OTHER_TARGET",
        message: format!(
            "model `{}` was trained for {}, not for {target}; {consequence}",
            selection.name(),
            trained.join("; "),
        ),
    })
}

/// What another target means for a ranking.
fn consequence(suits: TargetMatch) -> Option<&'static str> {
    match suits {
        TargetMatch::Same | TargetMatch::Unknown => None,
        TargetMatch::OtherHardware => {
            Some("its order may differ there, so measure more of the first")
        }
        TargetMatch::OtherCompiler => Some(
            "whose configurations mean something else: its order is no better than chance until some are measured",
        ),
    }
}
