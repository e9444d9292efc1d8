use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hlorank_graph::{Task, shortened};

use super::{
    selection::{Role, SelectError, Selection, VersionInUse, Wanted},
    settings::Defaults,
    versions::ServedVersions,
};
use crate::model::{Model, Target, TargetMatch};

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
        wanted: &Wanted,
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
    #[must_use]
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
        wanted: &Wanted,
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
        Ok(selection.with_canary_of_same_features())
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
    #[must_use]
    pub fn failing_default(&self) -> Option<(Task, SelectError)> {
        let mut tasks = self.defaults.required.iter().copied();
        tasks.find_map(|task| Some((task, self.select("", &Wanted::Any, None, task).err()?)))
    }

    /// Returns the names of the models.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.models.keys()
    }

    /// Returns the versions that answer calls which name no version, by name of their model.
    #[must_use]
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

    /// Returns a version of a model, whatever its task; the stable one for [`Wanted::Any`].
    pub fn version(&self, name: &str, wanted: &Wanted) -> Result<Arc<Model>, SelectError> {
        self.find(name, wanted).map(|selection| selection.stable)
    }

    /// Returns the versions of a model that may answer a request, whatever its task.
    fn find(&self, name: &str, wanted: &Wanted) -> Result<Selection, SelectError> {
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
            Wanted::Any => Ok(Selection {
                canary: canary.map(|(_, model, percent)| (Arc::clone(model), *percent)),
                ..one(stable)
            }),
            Wanted::Stable => Ok(one(stable)),
            Wanted::Canary => canary.map(|(_, canary, _)| one(canary)).ok_or_else(|| {
                SelectError::NotFound(format!(
                    "model `{name}` has no canary; request its stable version, or name no version"
                ))
            }),
            Wanted::Version(version) => served.loaded.get(version).map(one).ok_or_else(|| {
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
