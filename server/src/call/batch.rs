use std::sync::Arc;

use hlorank_graph::{ConfigurationError, Configurations, EncodedBatch, Limits, SegmentedGraph};

use super::CallError;
use crate::{admission::Place, compute::Class, model::Model};

/// Reads the batches of a call, against its graph and within its limits.
#[derive(Clone)]
pub(crate) struct BatchReader {
    graph: Arc<SegmentedGraph>,
    limits: Limits,
    /// Number of configuration columns that the model takes, if it names them.
    columns: Option<usize>,
    /// Maximum number of configurations of all batches together.
    max_configs: usize,
    place: Place,
}

/// What a call has sent before a batch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// Number of batches.
    pub(crate) batches: usize,
    /// Number of their configurations.
    pub(crate) configs: usize,
}

/// Maximum number of configurations of a small batch: a step of a search has some hundred.
const INTERACTIVE_CONFIGS: usize = 512;

/// Bytes of a configuration beside its rows: its place in the batch, which distinct one it is, where its rows end, its score
/// and its place in the ranking.
pub(crate) const CONFIG_BYTES: usize = 56;

impl BatchReader {
    /// Reads configurations of this graph for this model. `place` holds their memory.
    pub(crate) fn new(
        model: &Model,
        graph: Arc<SegmentedGraph>,
        limits: Limits,
        place: Place,
    ) -> Self {
        let set = model.manifest().features().named();
        Self {
            graph,
            limits,
            columns: set.map(|set| set.config_features().len()),
            max_configs: usize::MAX,
            place,
        }
    }

    /// Limits the number of configurations of all batches together.
    pub(crate) fn limit_to(&mut self, max_configs: usize) {
        self.max_configs = max_configs;
    }

    /// Number of configuration columns that the model takes, if it names them.
    pub(crate) fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Checks the width of a batch, holds the memory of it and of `copies` of its configurations, and returns its class.
    /// Nothing is read yet, because what it takes is counted before it is built.
    pub(crate) fn accept(&self, batch: &EncodedBatch, copies: usize) -> Result<Class, CallError> {
        self.accept_as(batch, batch.field(), copies)
    }

    /// The same for a batch of another field.
    pub(crate) fn accept_as(
        &self,
        batch: &EncodedBatch,
        field: &'static str,
        copies: usize,
    ) -> Result<Class, CallError> {
        self.check_columns(batch, field)?;
        // The rows of each configuration in a plan, as 32-bit numbers.
        let planned = self.graph.rows_per_config() * size_of::<u32>() + CONFIG_BYTES;
        let bytes = copies * self.bytes(batch) + batch.count() * planned;
        self.place.hold(bytes)?;
        Ok(class_of(batch.count()))
    }

    fn check_columns(&self, batch: &EncodedBatch, field: &'static str) -> Result<(), CallError> {
        match (batch.columns(), self.columns) {
            (Some(found), Some(expected)) if found != expected => {
                let source = ConfigurationError::WrongColumns { found, expected };
                Err(CallError::Configuration { field, source })
            }
            _ => Ok(()),
        }
    }

    /// Bytes of a batch once it is read.
    pub(crate) fn bytes(&self, batch: &EncodedBatch) -> usize {
        batch.read_bytes(self.graph.slots(), &self.limits)
    }

    /// Reads and checks a batch of a field, which takes long and so belongs on a worker.
    pub(crate) fn read(
        &self,
        batch: &EncodedBatch,
        field: &'static str,
        before: Position,
    ) -> Result<Configurations, CallError> {
        let read = read_batch(batch, &self.graph, &self.limits, field)?;
        let found = before.configs + read.len();
        if found > self.max_configs {
            return Err(CallError::StreamTooLong {
                batch: before.batches,
                found,
                limit: self.max_configs,
            });
        }
        Ok(read)
    }
}

/// Reads a batch of a field, and checks it against its graph.
pub(crate) fn read_batch(
    batch: &EncodedBatch,
    graph: &SegmentedGraph,
    limits: &Limits,
    field: &'static str,
) -> Result<Configurations, CallError> {
    // A test counts these lines.
    tracing::trace!(field, configs = batch.count(), "a batch is read");
    let read = batch.read(graph.task, &graph.configurable, limits);
    let read = read.and_then(|read| read.check(&graph.whole).map(|()| read));
    read.map_err(|source| CallError::Configuration { field, source })
}

/// The class of work on this number of configurations.
pub(crate) fn class_of(configs: usize) -> Class {
    if configs > INTERACTIVE_CONFIGS {
        Class::Bulk
    } else {
        Class::Interactive
    }
}
