use std::sync::Arc;

use hlorank_graph::{Digest, NamedFeatureSet};

use crate::{
    model::{Model, Target},
    refusal::refusals,
};

/// Which version of a model a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
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
    #[must_use]
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
        NotFound(words: String) => ModelNotFound,
        #[error("{0}")]
        UnknownFeatureSet(words: String) => FeatureSetUnknown.at("graph.feature_graph.feature_set"),
        #[error("{0}")]
        OtherFeatureSet(words: String) => FeatureSetMismatch.at("model"),
        #[error("{0}")]
        WrongTask(words: String) => ModelTaskMismatch.at("model"),
    }
}

impl Selection {
    /// What answers for graphs of a feature set that no model takes.
    #[must_use]
    pub fn absent(set: Arc<NamedFeatureSet>) -> Self {
        Self {
            stable: Arc::new(Model::absent(set)),
            canary: None,
        }
    }

    /// Returns the name of the model.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.stable.manifest().name
    }

    /// What the model was trained for; empty if its manifest does not say it.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.stable.manifest().targets
    }

    /// Leaves out a canary that takes other features than the stable version: it could not answer for a graph of these.
    pub(super) fn with_canary_of_same_features(mut self) -> Self {
        let features = &self.stable.manifest().features;
        self.canary = self
            .canary
            .filter(|(canary, _)| canary.manifest().features == *features);
        self
    }

    /// Returns the version that answers for a graph. It stays the same as long as the percentage does, and a canary
    /// keeps its graphs when its percentage grows.
    #[must_use]
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
