use std::fmt::Debug;

use hlorank_proto::v1::config_batch::Configs;

use super::{ConfigInput, Distinct, RowFinder};
use crate::{ConfigurationError, Graph, SegmentedGraph, Task};

/// The configurations of a batch, of one kind.
pub trait Batch: Debug + Send + Sync {
    /// The task that the configurations belong to.
    fn task(&self) -> Task;

    /// Number of configurations.
    fn count(&self) -> usize;

    /// Number of columns of a node, if they are of a feature set.
    fn columns(&self) -> Option<usize> {
        None
    }

    /// Checks that XLA accepts the configurations for a graph of their task and slots.
    fn check(&self, graph: &Graph) -> Result<(), ConfigurationError>;

    /// Finds the configurations that differ from each other for a model.
    fn distinct(&self) -> Distinct;

    /// The model input for these configurations: `[configs, slots, width]` or `[configs, width]`.
    fn input(&self, configs: &[usize]) -> ConfigInput;

    /// The row of one configuration in an npz file: `[slots * width]` or `[width]` values.
    fn feature_row(&self, config: usize) -> Vec<f32>;

    /// Writes every wire form that can hold the batch; `configurable` holds the node of each slot.
    fn to_forms(&self, configurable: &[u32]) -> Vec<Configs>;

    /// Writes the wire form that takes the fewest bytes.
    fn to_smallest_form(&self) -> Configs;

    /// Describes one configuration in a few words; `configurable` holds the node of each slot.
    fn describe(&self, config: usize, configurable: &[u32]) -> String;

    /// Writes one configuration as bytes. Configurations of one graph have equal bytes if and only if they are equal.
    fn canonical(&self, config: usize) -> Vec<u8>;

    /// Starts finding the rows of the batch on a graph of its task and slots.
    fn into_rows(self: Box<Self>, graph: &SegmentedGraph) -> Box<dyn RowFinder>;
}
