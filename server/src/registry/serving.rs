use std::{collections::BTreeMap, sync::Arc};

use hlorank_graph::{Digest, Task};

use super::versions::Served;
use crate::model::Model;

/// What answers requests at one moment. Never changed: a new one takes its place.
pub(super) struct Serving {
    pub(super) models: BTreeMap<String, Served<Arc<Model>>>,
    pub(super) defaults: Defaults,
}

/// The model of each task for requests that name none.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// For layouts.
    pub layout: String,
    /// For tiles.
    pub tile: String,
}

impl Defaults {
    /// The name for a task.
    #[must_use]
    pub fn name(&self, task: Task) -> &str {
        match task {
            Task::Layout => &self.layout,
            Task::Tile => &self.tile,
        }
    }
}

/// Which version of a model a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whatever serves: the stable version, or the canary where the graph is one of its.
    Any,
    /// The stable version.
    Stable,
    /// The canary.
    Canary,
    /// This version.
    Version(u64),
}

/// The versions that a request may be answered by; its graph settles by which.
#[derive(Clone)]
pub struct Selection {
    stable: Arc<Model>,
    /// And which percentage of graphs is its.
    canary: Option<(Arc<Model>, u8)>,
}

/// Why a request's model was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No such name.
    #[error("no model is named `{name}`; serving are {serving}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The names there are.
        serving: String,
    },
    /// No such version.
    #[error("version {version} of model `{name}` is not loaded; loaded are {loaded}")]
    NotLoaded {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
        /// The versions there are.
        loaded: String,
    },
    /// No canary.
    #[error("model `{name}` has no canary at present; ask for its stable version, or for none")]
    NoCanary {
        /// The model.
        name: String,
    },
    /// A model of the other task.
    #[error("model `{name}` ranks {model} configurations, but the batch holds {batch} configurations")]
    WrongTask {
        /// The model.
        name: String,
        /// What it ranks.
        model: Task,
        /// What was sent.
        batch: Task,
    },
}

/// Characters of an unknown name that an error shows.
const SHOWN_NAME: usize = 80;

impl Serving {
    /// Whether requests are answered alike by another.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same_model = |one: &(u64, Arc<Model>), other: &(u64, Arc<Model>)| Arc::ptr_eq(&one.1, &other.1);
        let same = |one: &Served<Arc<Model>>, other: &Served<Arc<Model>>| {
            let canaries = (&one.canary, &other.canary);
            same_model(&one.stable, &other.stable)
                && match canaries {
                    (Some((_, one, share)), Some((_, other, others))) => {
                        Arc::ptr_eq(one, other) && share == others
                    }
                    (one, other) => one.is_none() && other.is_none(),
                }
                && one.loaded.len() == other.loaded.len()
                && one.loaded.values().zip(other.loaded.values()).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        self.models.len() == other.models.len()
            && self
                .models
                .iter()
                .zip(&other.models)
                .all(|(one, other)| one.0 == other.0 && same(one.1, other.1))
    }

    /// What may answer a request for a model, the default of the task for an empty name.
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
        // Whoever asks may have made it megabytes long.
        let name = name.chars().take(SHOWN_NAME).collect();
        SelectError::UnknownName { name, serving: names.join(", ") }
    }
}

impl Selection {
    /// Name of the model.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.stable.manifest().name
    }

    /// The one that answers for a graph: always the same as long as the percentage is, and a canary keeps its graphs
    /// when its percentage grows.
    #[must_use]
    pub fn of_graph(self, graph: Digest) -> Arc<Model> {
        match self.canary {
            Some((canary, percent)) if is_canarys(graph, percent) => canary,
            _ => self.stable,
        }
    }
}

/// Whether a graph is among the so many per cent that a canary serves.
fn is_canarys(graph: Digest, percent: u8) -> bool {
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
            let count = graphs().filter(|&graph| is_canarys(graph, percent)).count();
            let expected = usize::from(percent) * 100;
            assert!(count.abs_diff(expected) < 200, "{count} of 10,000 at {percent} %");
        }
        assert!(graphs().all(|graph| is_canarys(graph, 100)));
        assert!(is_canarys(Digest([255; 32]), 100) && !is_canarys(Digest([255; 32]), 99));
    }

    #[test]
    fn a_growing_canary_keeps_its_graphs() {
        assert!(graphs().filter(|&graph| is_canarys(graph, 10)).all(|graph| is_canarys(graph, 20)));
    }
}
