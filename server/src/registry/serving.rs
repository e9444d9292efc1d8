use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hlorank_graph::{Digest, NamedFeatureSet, Task, shortened};

use super::{settings::Defaults, versions::ServedVersions};
use crate::{
    model::{Model, Target, TargetMatch},
    refusal::refusals,
};

/// An immutable snapshot of the versions that answer requests. A change publishes a new snapshot.
pub struct ServingModels {
    pub(super) models: BTreeMap<String, ServedVersions<Arc<Model>>>,
    pub(super) defaults: Defaults,
}

impl ServingModels {
    /// Returns whether another snapshot answers requests in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        // A version that was loaded again is another model, even if its files are the same.
        fn identity(served: &ServedVersions<Arc<Model>>) -> impl PartialEq {
            let canary = served.canary.as_ref();
            let canary = canary.map(|(_, model, percent)| (Arc::as_ptr(model), *percent));
            let loaded: Vec<_> = served.loaded.values().map(Arc::as_ptr).collect();
            (Arc::as_ptr(&served.stable.1), canary, loaded)
        }
        let is_same = |(name, served): (&String, _)| {
            let other = other.models.get(name).map(identity);
            other == Some(identity(served))
        };
        self.models.len() == other.models.len() && self.models.iter().all(is_same)
    }

    /// Returns the versions that may answer a request for a model. An empty name means the model of the task that suits the
    /// target best, or else the default one.
    pub fn select(
        &self,
        name: &str,
        wanted: &VersionSelector,
        target: Option<&Target>,
        task: Task,
    ) -> Result<Selection, SelectError> {
        let name = match (name, target) {
            ("", Some(target)) if !self.defaults.chosen.contains(&task) => {
                self.suiting(target, task)
            }
            ("", _) => self.defaults.name(task),
            (name, _) => name,
        };
        let selection = self.find(name, wanted)?;
        match selection.stable.manifest().task {
            own if own == task => Ok(selection),
            own => Err(wrong_task(name, own, task)),
        }
    }

    /// Returns the model of a task that suits a target best: of equal ones the default, else the first by name. It is the default
    /// if none was trained for the target's compiler.
    fn suiting(&self, target: &Target, task: Task) -> &str {
        let default = self.defaults.name(task);
        // The last of equal models is the maximum. The reversed order makes it the first by name.
        let suiting = self.of_task(task).rev().map(|(name, model)| {
            let suits = target.suited_by(&model.manifest().targets);
            (suits, name == default, name)
        });
        let suiting = suiting.filter(|(suits, ..)| *suits > TargetMatch::Unknown);
        let best = suiting.max_by_key(|(suits, is_default, _)| (*suits, *is_default));
        best.map_or(default, |(.., name)| name)
    }

    /// Returns the compilers that the models of a task were trained for, if an operator did not choose one of the models.
    pub fn compilers(&self, task: Task) -> BTreeSet<String> {
        if self.defaults.chosen.contains(&task) {
            return BTreeSet::new();
        }
        let targets = self
            .of_task(task)
            .flat_map(|(_, model)| &model.manifest().targets);
        targets.map(|target| target.compiler.clone()).collect()
    }

    /// Returns the models of a task with their stable versions, by name.
    fn of_task(&self, task: Task) -> impl DoubleEndedIterator<Item = (&str, &Arc<Model>)> {
        let stable = self.stable();
        stable.filter(move |(_, model)| model.manifest().task == task)
    }

    /// Returns the stable versions of all models, by name.
    fn stable(&self) -> impl DoubleEndedIterator<Item = (&str, &Arc<Model>)> {
        let models = self.models.iter();
        models.map(|(name, served)| (name.as_str(), &served.stable.1))
    }

    /// Returns the versions that may answer a request about a graph of a feature set. An empty name means the default model of
    /// the set: the one of the settings, the only one that serves, or the only one that suits the target best.
    pub fn select_for_set(
        &self,
        name: &str,
        wanted: &VersionSelector,
        target: Option<&Target>,
        set: &str,
    ) -> Result<Selection, SelectError> {
        let name = match name {
            "" => self.default_of_set(set, target)?,
            name => name,
        };
        let selection = self.find(name, wanted)?;
        let manifest = selection.stable.manifest();
        let named = manifest.features.named();
        let named = named.ok_or_else(|| wrong_task(name, manifest.task, Task::FeatureSet))?;
        if named.name() != set {
            return Err(SelectError::OtherFeatureSet(format!(
                "model `{name}` takes graphs of the feature set `{}`, but the graph is of the feature set `{set}`",
                named.name()
            )));
        }
        // A canary that takes other features than the stable version could not answer for a graph of these.
        let canary = selection
            .canary
            .filter(|(canary, _)| canary.manifest().features == manifest.features);
        Ok(Selection {
            canary,
            stable: selection.stable,
        })
    }

    /// Returns the default model of a feature set: if the settings name none, the only one that suits a target best, or the only
    /// one of all if none was trained for its compiler.
    fn default_of_set(&self, set: &str, target: Option<&Target>) -> Result<&str, SelectError> {
        if let Some(name) = self.defaults.of_feature_set(set) {
            return Ok(name);
        }
        let of_set = self
            .stable()
            .filter(|(_, model)| set_of(model) == Some(set));
        let mut candidates: Vec<_> = of_set
            .map(|(name, model)| {
                let suits = target.map(|target| target.suited_by(&model.manifest().targets));
                (name, suits)
            })
            .collect();
        let best = candidates.iter().map(|(_, suits)| *suits).max().flatten();
        if best > Some(TargetMatch::Unknown) {
            candidates.retain(|(_, suits)| *suits == best);
        }
        match candidates[..] {
            [(name, _)] => Ok(name),
            [] => {
                let served: BTreeSet<&str> = self
                    .stable()
                    .filter_map(|(_, model)| set_of(model))
                    .collect();
                let served = match served.len() {
                    0 => "none".to_owned(),
                    _ => quoted(served),
                };
                Err(SelectError::UnknownFeatureSet(format!(
                    "no model takes graphs of the feature set `{set}`; the served sets are {served}; name one of them, \
                     publish a model of this set, or send config_columns to learn from measurements alone"
                )))
            }
            _ => Err(SelectError::NotFound(format!(
                "the models {} take graphs of the feature set `{set}`; name one of them, or set --default-models \
                 {set}=MODEL on the server",
                quoted(candidates.into_iter().map(|(name, _)| name))
            ))),
        }
    }

    /// Returns whether calls that name no model reach a model with this name.
    pub(super) fn is_default(&self, model: &Model, name: &str) -> bool {
        match set_of(model) {
            Some(set) => self
                .default_of_set(set, None)
                .is_ok_and(|default| default == name),
            None => self.defaults.name(model.manifest().task) == name,
        }
    }

    /// Returns a task whose default model is required and does not answer, and the reason.
    pub fn failing_default(&self) -> Option<(Task, SelectError)> {
        let mut tasks = self.defaults.required.iter().copied();
        tasks.find_map(|task| {
            Some((
                task,
                self.select("", &VersionSelector::Any, None, task).err()?,
            ))
        })
    }

    /// Returns the names of the models.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.models.keys()
    }

    /// Returns the versions that answer calls which name no version, by name of their model.
    pub fn in_use(&self) -> Vec<VersionInUse> {
        let of = |role, model: &Arc<Model>| VersionInUse {
            role,
            model: Arc::clone(model),
        };
        let of_model = |served: &ServedVersions<Arc<Model>>| {
            let canary = served.canary.as_ref();
            let canary = canary.map(|(_, model, _)| of(Role::Canary, model));
            [Some(of(Role::Stable, &served.stable.1)), canary]
        };
        self.models.values().flat_map(of_model).flatten().collect()
    }

    /// Returns a version of a model, whatever its task; the stable one for [`VersionSelector::Any`].
    pub fn version(&self, name: &str, wanted: &VersionSelector) -> Result<Arc<Model>, SelectError> {
        self.find(name, wanted).map(|selection| selection.stable)
    }

    /// Returns the versions of a model that may answer a request, whatever its task.
    fn find(&self, name: &str, wanted: &VersionSelector) -> Result<Selection, SelectError> {
        let served = self.models.get(name).ok_or_else(|| {
            // A client may send a name of megabytes.
            SelectError::NotFound(format!(
                "no model is named `{}`; the models are {}",
                shortened(name),
                quoted(self.names())
            ))
        })?;
        let one = |model: &Arc<Model>| Selection {
            stable: Arc::clone(model),
            canary: None,
        };
        let (_, stable) = &served.stable;
        let canary = served.canary.as_ref();
        match wanted {
            VersionSelector::Any => Ok(Selection {
                canary: canary.map(|(_, model, percent)| (Arc::clone(model), *percent)),
                ..one(stable)
            }),
            VersionSelector::Stable => Ok(one(stable)),
            VersionSelector::Canary => canary.map(|(_, canary, _)| one(canary)).ok_or_else(|| {
                SelectError::NotFound(format!(
                    "model `{name}` has no canary; request its stable version, or name no version"
                ))
            }),
            VersionSelector::Version(version) => served.loaded.get(version).map(one).ok_or_else(|| {
                let loaded: Vec<String> = served.loaded.keys().map(u64::to_string).collect();
                SelectError::NotFound(format!(
                    "version {version} of model `{name}` is not loaded; the loaded versions are {}",
                    loaded.join(", ")
                ))
            }),
        }
    }
}

fn wrong_task(name: &str, model: Task, batch: Task) -> SelectError {
    SelectError::WrongTask(format!(
        "model `{name}` ranks {model} configurations, but the batch holds {batch} configurations"
    ))
}

/// Returns the name of the feature set that a model takes.
fn set_of(model: &Model) -> Option<&str> {
    Some(model.manifest().features.named()?.name())
}

fn quoted(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let names = names.into_iter();
    let names: Vec<String> = names.map(|name| format!("`{}`", name.as_ref())).collect();
    names.join(", ")
}

/// Which version of a model a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionSelector {
    /// The stable version, or the canary if the graph is assigned to it.
    Any,
    /// The stable version.
    Stable,
    /// The canary.
    Canary,
    /// The version with this number.
    Version(u64),
}

/// What a version of a model is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It answers calls that name no version.
    Stable,
    /// It serves a share of the graphs.
    Canary,
}

/// A version in use.
#[derive(Clone)]
pub struct VersionInUse {
    /// What for.
    pub role: Role,
    /// The version.
    pub model: Arc<Model>,
}

impl Role {
    /// Its name, as a label and for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Canary => "canary",
        }
    }
}

/// The versions that may answer a request. The request's graph decides which of them does.
#[derive(Clone)]
pub struct Selection {
    pub(super) stable: Arc<Model>,
    /// The canary, and the percentage of graphs that it serves.
    pub(super) canary: Option<(Arc<Model>, u8)>,
}

refusals! {
    /// Why a request's model was not found: what was asked for, and what there is.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    pub enum SelectError {
        #[error("{0}")]
        NotFound(words: String) => MODEL_NOT_FOUND,
        #[error("{0}")]
        UnknownFeatureSet(words: String) => FEATURE_SET_UNKNOWN.at("graph.feature_graph.feature_set"),
        #[error("{0}")]
        OtherFeatureSet(words: String) => FEATURE_SET_MISMATCH.at("model"),
        #[error("{0}")]
        WrongTask(words: String) => MODEL_TASK_MISMATCH.at("model"),
    }
}

impl Selection {
    /// What answers for graphs of a feature set that no model takes.
    pub fn absent(set: Arc<NamedFeatureSet>) -> Self {
        Self {
            stable: Arc::new(Model::absent(set)),
            canary: None,
        }
    }

    /// Returns the name of the model.
    pub fn name(&self) -> &str {
        &self.stable.manifest().name
    }

    /// What the model was trained for; empty if its manifest does not say it.
    pub fn targets(&self) -> &[Target] {
        &self.stable.manifest().targets
    }

    /// Returns the version that answers for a graph. It stays the same as long as the percentage does, and a canary
    /// keeps its graphs when its percentage grows.
    pub fn of_graph(self, graph: Digest) -> Arc<Model> {
        match self.canary {
            Some((canary, percent)) if routes_to_canary(graph, percent) => canary,
            _ => self.stable,
        }
    }
}

/// Returns whether a graph is among the `percent` of all graphs that a canary serves.
fn routes_to_canary(graph: Digest, percent: u8) -> bool {
    // A digest is as good as a random number that stays the same. A larger percentage raises the
    // bound, so that it includes every graph of a smaller one.
    let [a, b, c, d, ..] = graph.0;
    let drawn = u64::from(u32::from_le_bytes([a, b, c, d]));
    drawn * 100 < u64::from(percent) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graphs() -> impl Iterator<Item = Digest> {
        (0..10_000_u32).map(|graph| Digest(*blake3::hash(&graph.to_le_bytes()).as_bytes()))
    }

    #[test]
    fn a_canary_gets_its_percentage_of_graphs() {
        for percent in [1, 10, 50] {
            let count = graphs()
                .filter(|&graph| routes_to_canary(graph, percent))
                .count();
            let expected = usize::from(percent) * 100;
            assert!(
                count.abs_diff(expected) < 200,
                "{count} of 10,000 at {percent} %"
            );
        }
        assert!(graphs().all(|graph| routes_to_canary(graph, 100) && !routes_to_canary(graph, 0)));
        assert!(
            routes_to_canary(Digest([255; 32]), 100) && !routes_to_canary(Digest([255; 32]), 99)
        );
    }

    #[test]
    fn a_growing_canary_keeps_its_graphs() {
        assert!(
            graphs()
                .filter(|&graph| routes_to_canary(graph, 10))
                .all(|graph| routes_to_canary(graph, 20))
        );
    }
}
