use std::sync::Arc;

use hlorank_graph::{Digest, FeatureSet, LOOP_FEATURES, NamedFeatureSet, Task};

/// The features that a model takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelFeatures {
    /// Those of HLO instructions, which this server computes.
    Instructions(&'static FeatureSet),
    /// The columns of a set that the manifest names, which clients compute.
    Named(Arc<NamedFeatureSet>),
}

impl ModelFeatures {
    /// The digest of the set.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Instructions(set) => set.digest(),
            Self::Named(set) => set.digest(),
        }
    }

    /// Number of features of a node.
    pub fn node_features(&self) -> usize {
        match self {
            Self::Instructions(set) => set.node_features(),
            Self::Named(set) => set.node_features().len(),
        }
    }

    /// Whether each tile has the columns of its kernel's loops.
    pub fn has_loops(&self) -> bool {
        matches!(self, Self::Instructions(set) if set.has_loops())
    }

    /// Number of values of a configuration in each of its rows, as the model takes them.
    pub(super) fn config_width(&self, task: Task) -> usize {
        let loops = if self.has_loops() { LOOP_FEATURES } else { 0 };
        self.config_features().unwrap_or(task.kind().width + loops)
    }

    /// Number of features of a configuration in each of its rows, if the manifest names the set.
    pub(super) fn config_features(&self) -> Option<usize> {
        self.named().map(|set| set.config_features().len())
    }

    /// The set, if the manifest names it.
    pub fn named(&self) -> Option<&NamedFeatureSet> {
        match self {
            Self::Instructions(_) => None,
            Self::Named(set) => Some(set),
        }
    }
}
