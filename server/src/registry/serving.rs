use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hlorank_graph::Task;

use super::{
    selection::{Role, SelectError, Selection, VersionInUse, Wanted},
    settings::Defaults,
    versions::ServedVersions,
};
use crate::model::{Model, Target, TargetMatch};

/// An immutable snapshot of the versions that answer requests. A change publishes a new snapshot.
pub(super) struct ServingSnapshot {
    pub(super) models: BTreeMap<String, ServedVersions<Arc<Model>>>,
    pub(super) defaults: Defaults,
}

/// Maximum number of characters of an unknown name in an error message.
const MAX_SHOWN_NAME: usize = 80;

impl ServingSnapshot {
    /// Returns whether another snapshot answers requests in the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.models.len() == other.models.len()
            && self
                .models
                .iter()
                .zip(&other.models)
                .all(|(one, other)| one.0 == other.0 && is_same(one.1, other.1))
    }

    /// Returns the versions that may answer a request for a model. An empty name means the model of the task that suits the
    /// target best, or else the default one.
    pub(super) fn select(
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
        let suits = |name: &str, served| {
            let suits = target.suited_by(trained_for(served));
            let is_default = name == default;
            (suits > TargetMatch::Unknown).then_some((suits, is_default))
        };
        // The last of equal models is the maximum. The reversed order makes it the first by name.
        let of_task = self.of_task(task).rev();
        let suiting = of_task.filter_map(|(name, served)| Some((suits(name, served)?, name)));
        suiting
            .max_by_key(|(suits, _)| *suits)
            .map_or(default, |(_, name)| name)
    }

    /// Returns the compilers that the models of a task were trained for, if an operator did not choose one of the models.
    pub(super) fn compilers(&self, task: Task) -> BTreeSet<String> {
        if self.defaults.chosen.contains(&task) {
            return BTreeSet::new();
        }
        let targets = self
            .of_task(task)
            .flat_map(|(_, served)| trained_for(served));
        targets.map(|target| target.compiler.clone()).collect()
    }

    fn of_task(
        &self,
        task: Task,
    ) -> impl DoubleEndedIterator<Item = (&str, &ServedVersions<Arc<Model>>)> {
        let models = self.models.iter();
        let is_of_task =
            move |served: &ServedVersions<Arc<Model>>| served.stable.1.manifest().task == task;
        models
            .filter(move |(_, served)| is_of_task(served))
            .map(|(name, served)| (name.as_str(), served))
    }

    /// Returns the versions that may answer a request about a graph of a feature set. An empty name means the default model of
    /// the set: the one of the settings, the only one that serves, or the only one that suits the target best.
    pub(super) fn select_for_set(
        &self,
        name: &str,
        wanted: &Wanted,
        target: Option<&Target>,
        set: &str,
    ) -> Result<Selection, SelectError> {
        let name = if name.is_empty() {
            self.default_of_set(set, target)?
        } else {
            name
        };
        let selection = self.find(name, wanted)?;
        let manifest = selection.stable.manifest();
        let named = manifest
            .features
            .named()
            .ok_or_else(|| wrong_task(name, manifest.task, Task::FeatureSet))?;
        if named.name() != set {
            return Err(SelectError::OtherFeatureSet {
                name: name.to_owned(),
                model: named.name().to_owned(),
                graph: set.to_owned(),
            });
        }
        Ok(selection.with_canary_of_same_features())
    }

    /// Returns the default model of a feature set.
    fn default_of_set(&self, set: &str, target: Option<&Target>) -> Result<&str, SelectError> {
        if let Some(name) = self.defaults.of_feature_set(set) {
            return Ok(name);
        }
        let names = self.suiting_of_set(set, target);
        match names[..] {
            [name] => Ok(name),
            [] => Err(self.unknown_set(set)),
            _ => Err(SelectError::SeveralOfFeatureSet {
                set: set.to_owned(),
                names: quoted(names),
            }),
        }
    }

    /// Returns the models of a feature set that suit a target best, or all of them if none was trained for its compiler.
    fn suiting_of_set(&self, set: &str, target: Option<&Target>) -> Vec<&str> {
        let suits = |served| target.map(|target| target.suited_by(trained_for(served)));
        let of_set = self
            .models
            .iter()
            .filter(|(_, served)| set_of(&served.stable.1) == Some(set));
        let mut candidates: Vec<_> = of_set
            .map(|(name, served)| (name.as_str(), suits(served)))
            .collect();
        let best = candidates.iter().map(|(_, suits)| *suits).max().flatten();
        if best > Some(TargetMatch::Unknown) {
            candidates.retain(|(_, suits)| *suits == best);
        }
        candidates.into_iter().map(|(name, _)| name).collect()
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

    /// Returns the versions in use, by name of their model.
    pub(super) fn in_use(&self) -> Vec<VersionInUse> {
        let of_model = |served: &ServedVersions<Arc<Model>>| {
            let of = |role, model: &Arc<Model>| VersionInUse {
                role,
                model: Arc::clone(model),
            };
            let beside = served.canary.as_ref();
            let canary = beside.map(|(_, model, _)| of(Role::Canary, model));
            [Some(of(Role::Stable, &served.stable.1)), canary]
                .into_iter()
                .flatten()
        };
        self.models.values().flat_map(of_model).collect()
    }

    fn unknown_set(&self, set: &str) -> SelectError {
        let served: BTreeSet<&str> = self
            .models
            .values()
            .filter_map(|served| set_of(&served.stable.1))
            .collect();
        let served = if served.is_empty() {
            "none".to_owned()
        } else {
            quoted(served)
        };
        SelectError::UnknownFeatureSet {
            set: set.to_owned(),
            served,
        }
    }

    /// Returns the versions of a model that may answer a request, whatever its task.
    pub(super) fn find(&self, name: &str, wanted: &Wanted) -> Result<Selection, SelectError> {
        let served = self
            .models
            .get(name)
            .ok_or_else(|| self.unknown_name(name))?;
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
            Wanted::Canary => {
                canary
                    .map(|(_, canary, _)| one(canary))
                    .ok_or_else(|| SelectError::NoCanary {
                        name: name.to_owned(),
                    })
            }
            Wanted::Version(version) => {
                let loaded = served.loaded.get(version).map(one);
                loaded.ok_or_else(|| not_loaded(name, *version, served))
            }
        }
    }

    fn unknown_name(&self, name: &str) -> SelectError {
        // A client may send a name of megabytes.
        let name = name.chars().take(MAX_SHOWN_NAME).collect();
        SelectError::UnknownName {
            name,
            serving: quoted(self.models.keys()),
        }
    }
}

fn not_loaded(name: &str, version: u64, served: &ServedVersions<Arc<Model>>) -> SelectError {
    let loaded: Vec<String> = served.loaded.keys().map(u64::to_string).collect();
    SelectError::NotLoaded {
        name: name.to_owned(),
        version,
        loaded: loaded.join(", "),
    }
}

fn wrong_task(name: &str, model: Task, batch: Task) -> SelectError {
    SelectError::WrongTask {
        name: name.to_owned(),
        model,
        batch,
    }
}

/// What the stable version of a model was trained for.
fn trained_for(served: &ServedVersions<Arc<Model>>) -> &[Target] {
    &served.stable.1.manifest().targets
}

/// Returns the name of the feature set that a model takes.
fn set_of(model: &Model) -> Option<&str> {
    Some(model.manifest().features.named()?.name())
}

fn quoted(names: impl IntoIterator<Item: AsRef<str>>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    names.join(", ")
}

/// Returns whether two sets of versions of a model answer requests in the same way.
fn is_same(one: &ServedVersions<Arc<Model>>, other: &ServedVersions<Arc<Model>>) -> bool {
    let canary = |served: &ServedVersions<Arc<Model>>| {
        let canary = served.canary.as_ref();
        canary.map(|(_, model, percent)| (Arc::as_ptr(model), *percent))
    };
    let loaded = one.loaded.values().map(Arc::as_ptr);
    // A version that was loaded again is another model, even if its files are the same.
    Arc::ptr_eq(&one.stable.1, &other.stable.1)
        && canary(one) == canary(other)
        && loaded.eq(other.loaded.values().map(Arc::as_ptr))
}
