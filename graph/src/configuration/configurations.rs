use hlorank_proto::v1::config_batch::Configs;

use super::{Batch, FusionBatch, LayoutBatch, NodeFeatureBatch, RowFinder, Task, TileBatch};
use crate::{ConfigurationError, Graph, SegmentedGraph};

/// A batch of configurations of one graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Configurations {
    /// Layouts of the configurable nodes of a module.
    Layout(LayoutBatch),
    /// Tiles of a kernel.
    Tile(TileBatch),
    /// Fusions of a program.
    Fusion(FusionBatch),
    /// Columns of a feature set for every node.
    FeatureSet(NodeFeatureBatch),
}

impl Configurations {
    /// The batch, whatever its kind.
    #[must_use]
    pub fn batch(&self) -> &dyn Batch {
        match self {
            Self::Layout(batch) => batch,
            Self::Tile(batch) => batch,
            Self::Fusion(batch) => batch,
            Self::FeatureSet(batch) => batch,
        }
    }

    /// Starts finding the rows of the batch on a graph of its task and slots.
    #[must_use]
    pub fn into_rows(self, graph: &SegmentedGraph) -> Box<dyn RowFinder> {
        let batch: Box<dyn Batch> = match self {
            Self::Layout(batch) => Box::new(batch),
            Self::Tile(batch) => Box::new(batch),
            Self::Fusion(batch) => Box::new(batch),
            Self::FeatureSet(batch) => Box::new(batch),
        };
        batch.into_rows(graph)
    }

    /// Number of configurations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch().count()
    }

    /// Whether there are no configurations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the configurations of these numbers, which must be below the length.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        match self {
            Self::Layout(batch) => Self::Layout(batch.select(numbers)),
            Self::Tile(batch) => Self::Tile(batch.select(numbers)),
            Self::Fusion(batch) => Self::Fusion(batch.select(numbers)),
            Self::FeatureSet(batch) => Self::FeatureSet(batch.select(numbers)),
        }
    }

    /// Number of columns of a node, if they are of a feature set.
    #[must_use]
    pub fn columns(&self) -> Option<usize> {
        match self {
            Self::FeatureSet(batch) => Some(batch.columns()),
            Self::Layout(_) | Self::Tile(_) | Self::Fusion(_) => None,
        }
    }

    /// The task that the configurations belong to.
    #[must_use]
    pub fn task(&self) -> Task {
        self.batch().task()
    }

    /// Checks that XLA accepts the configurations for a graph of their task and slots: layouts list each dimension of a
    /// tensor at most once, and no other; bounds of tiles are at least 1. Every choice of fusions is accepted, and every feature.
    pub fn check(&self, graph: &Graph) -> Result<(), ConfigurationError> {
        self.batch().check(graph)
    }

    /// Writes the wire form that takes the fewest bytes.
    #[must_use]
    pub fn to_smallest_form(&self) -> Configs {
        self.batch().to_smallest_form()
    }

    /// Writes every wire form that can hold the batch; `configurable` holds the node of each slot.
    #[must_use]
    pub fn to_forms(&self, configurable: &[u32]) -> Vec<Configs> {
        self.batch().to_forms(configurable)
    }
}
