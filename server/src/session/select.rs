use std::sync::Arc;

use hlorank_graph::{Graph, Task};

use crate::{
    call::CallError,
    metrics::{Metrics, ModelSeries},
    model::Model,
    registry::{Registry, SelectError, Selection, Wanted},
    telemetry::CallRecord,
};

/// Selects the models of calls.
pub(crate) struct ModelSelection {
    registry: Arc<Registry>,
    metrics: Arc<Metrics>,
}

/// The versions of a model that may answer a call. The graph decides which of them does.
pub(crate) struct SelectedModel {
    pub(super) selection: Selection,
    pub(super) series: Arc<ModelSeries>,
}

/// What metrics call the model of calls that no model answers.
const NO_MODEL: &str = "none";

impl ModelSelection {
    /// Selects among the models of a registry.
    pub(crate) fn new(registry: Arc<Registry>, metrics: Arc<Metrics>) -> Self {
        Self { registry, metrics }
    }

    /// Another model that learned from the same data, if one serves.
    pub(crate) fn second_opinion(&self, model: &Model) -> Option<Arc<Model>> {
        self.registry.second_opinion(model)
    }

    /// Selects the model of a call: the default of the task if the name is empty.
    pub(crate) fn select(
        &self,
        name: &str,
        wanted: &Wanted,
        task: Task,
        record: &CallRecord,
    ) -> Result<SelectedModel, CallError> {
        Ok(self.selected(self.registry.select(name, wanted, task)?, record))
    }

    /// Selects the model of a call about a graph: the default of its task or feature set if the name is empty.
    pub(crate) fn select_for(
        &self,
        name: &str,
        wanted: &Wanted,
        graph: &Graph,
        record: &CallRecord,
    ) -> Result<SelectedModel, CallError> {
        let Some(features) = graph.feature_graph() else {
            return self.select(name, wanted, graph.task(), record);
        };
        let selection = self.registry.select_for_set(name, wanted, features.set());
        let described = features.description().filter(|_| *wanted == Wanted::Any);
        let selection = match (selection, described) {
            // A call that describes its feature set can be answered from measurements alone.
            (Err(SelectError::UnknownFeatureSet { .. }), Some(set)) => {
                Selection::absent(Arc::clone(set))
            }
            (selection, _) => selection?,
        };
        Ok(self.selected(selection, record))
    }

    fn selected(&self, selection: Selection, record: &CallRecord) -> SelectedModel {
        let name = match selection.name() {
            "" => NO_MODEL,
            name => name,
        };
        let series = self.metrics.model(name);
        record.selected(&series);
        SelectedModel { selection, series }
    }
}
