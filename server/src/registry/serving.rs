use std::{collections::BTreeMap, sync::Arc};

use hlorank_graph::Task;

use super::{
    selection::{SelectError, Selection, Wanted},
    settings::Defaults,
    versions::ServedVersions,
};
use crate::model::Model;

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

    /// Returns the versions that may answer a request for a model. An empty name means the default model of the task.
    pub(super) fn select(&self, name: &str, wanted: &Wanted, task: Task) -> Result<Selection, SelectError> {
        let name = if name.is_empty() { self.defaults.name(task) } else { name };
        let selection = self.find(name, wanted)?;
        match selection.stable.manifest().task() {
            own if own == task => Ok(selection),
            own => Err(SelectError::WrongTask { name: name.to_owned(), model: own, batch: task }),
        }
    }

    fn find(&self, name: &str, wanted: &Wanted) -> Result<Selection, SelectError> {
        let served = self.models.get(name).ok_or_else(|| self.unknown_name(name))?;
        let one = |model: &Arc<Model>| Selection { stable: Arc::clone(model), canary: None };
        let (_, stable) = &served.stable;
        match wanted {
            Wanted::Any => Ok(Selection {
                canary: served.canary.as_ref().map(|(_, model, percent)| (Arc::clone(model), *percent)),
                ..one(stable)
            }),
            Wanted::Stable => Ok(one(stable)),
            Wanted::Canary => match &served.canary {
                Some((_, canary, _)) => Ok(one(canary)),
                None => Err(SelectError::NoCanary { name: name.to_owned() }),
            },
            Wanted::Version(version) => served.loaded.get(version).map(one).ok_or_else(|| {
                let loaded: Vec<String> = served.loaded.keys().map(u64::to_string).collect();
                SelectError::NotLoaded { name: name.to_owned(), version: *version, loaded: loaded.join(", ") }
            }),
        }
    }

    fn unknown_name(&self, name: &str) -> SelectError {
        let names: Vec<String> = self.models.keys().map(|name| format!("`{name}`")).collect();
        // A client may send a name of megabytes.
        let name = name.chars().take(MAX_SHOWN_NAME).collect();
        SelectError::UnknownName { name, serving: names.join(", ") }
    }
}

/// Returns whether two sets of versions of a model answer requests in the same way.
fn is_same(one: &ServedVersions<Arc<Model>>, other: &ServedVersions<Arc<Model>>) -> bool {
    let same_canary = match (&one.canary, &other.canary) {
        (Some((_, one, percent)), Some((_, other, other_percent))) => {
            Arc::ptr_eq(one, other) && percent == other_percent
        }
        (one, other) => one.is_none() && other.is_none(),
    };
    Arc::ptr_eq(&one.stable.1, &other.stable.1)
        && same_canary
        && one.loaded.len() == other.loaded.len()
        && one.loaded.values().zip(other.loaded.values()).all(|(one, other)| Arc::ptr_eq(one, other))
}
