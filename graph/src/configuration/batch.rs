use std::fmt::Debug;

use hlorank_proto::v1::config_batch::Configs;
use prost::encoding::decode_varint;

use super::{
    distinct::Distinct,
    rows::{ConfigInput, RowFinder},
};
use crate::{ConfigurationError, Graph, Limits, SegmentedGraph, Task};

/// The configurations of a batch, of one kind.
pub trait Batch: Debug + Send + Sync {
    /// The task that the configurations belong to.
    fn task(&self) -> Task;

    /// Number of configurations.
    fn len(&self) -> usize;

    /// Whether there are no configurations.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns of a node, if they are of a feature set.
    fn columns(&self) -> Option<usize> {
        None
    }

    /// Number of columns of a slot or node in a [row](Self::feature_row); 1 if its values mean the same.
    fn row_columns(&self) -> usize {
        self.task().kind().row_columns(self.columns())
    }

    /// Checks that XLA accepts the configurations for a graph of their task and slots: layouts list each dimension of a
    /// tensor at most once, and no other; bounds of tiles are at least 1. Every choice of fusions is accepted, and every feature.
    fn check(&self, graph: &Graph) -> Result<(), ConfigurationError>;

    /// Finds the configurations that differ from each other for a model.
    fn distinct(&self) -> Distinct;

    /// The model input for these configurations: `[configs, slots, width]` or `[configs, width]`.
    fn input(&self, configs: &[usize]) -> ConfigInput;

    /// The row of one configuration in an npz file: the columns of one slot or node after the other.
    fn feature_row(&self, config: usize) -> Vec<f32>;

    /// Writes the wire form that takes the fewest bytes.
    fn to_smallest_form(&self) -> Configs;

    /// Describes one configuration in a few words; `configurable` holds the node of each slot.
    fn describe(&self, config: usize, configurable: &[u32]) -> String;

    /// Writes one configuration as bytes. Configurations of one graph have equal bytes if and only if they are equal.
    fn canonical(&self, config: usize) -> Vec<u8>;

    /// Starts finding the rows of the batch on a graph of its task and slots.
    fn into_rows(self: Box<Self>, graph: &SegmentedGraph) -> Box<dyn RowFinder>;
}

/// How batches of one kind are read: from messages, files and stores. [`Batch`] is what they are asked once they are read.
pub(super) trait ReadBatch: Batch + Sized + 'static {
    /// Reads the rows of an npz file.
    type Rows: FeatureRows<Self>;

    /// Starts reading the rows of an npz file, for a graph with this many slots.
    fn feature_rows(slots: usize, limits: Limits) -> Self::Rows;

    /// Reads configurations of one graph that [`Batch::canonical`] wrote, at least one.
    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError>;
}

/// Reads the configurations of an npz file row by row, into batches of one kind.
pub(super) trait FeatureRows<Batch> {
    /// Adds the next configuration.
    fn push_row(&mut self, row: &[f32]) -> Result<(), ConfigurationError>;

    /// Returns the configurations; fails if there are none and the kind does not allow that.
    fn finish(self) -> Result<Batch, ConfigurationError>;
}

/// Reads the next number from the bytes of a configuration.
pub(super) fn number(bytes: &mut &[u8]) -> Result<u64, ConfigurationError> {
    decode_varint(bytes).map_err(|error| malformed(&error.to_string()))
}

pub(super) fn malformed(detail: &str) -> ConfigurationError {
    ConfigurationError::Malformed {
        detail: detail.to_owned(),
    }
}

/// Maximum number of letters for the nodes of a description; the rest is left out.
const NODE_LETTERS: usize = 40;

/// Appends nodes to a description: `first` before the first of them, and commas between them.
pub(super) fn append_nodes(text: &mut String, first: &str, nodes: impl Iterator<Item = String>) {
    let start = text.len();
    for (position, node) in nodes.enumerate() {
        if text.len() - start > NODE_LETTERS {
            text.push_str(", …");
            break;
        }
        text.push_str(if position == 0 { first } else { ", " });
        text.push_str(&node);
    }
}

/// Writes numbers separated by commas.
pub(super) fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
