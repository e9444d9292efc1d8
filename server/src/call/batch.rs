//! Reads the parts of requests that hold most of the bytes, graphs and batches of configurations, with limits.

use std::sync::Arc;

use bytes::Bytes;
use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, Limits, SegmentedGraph, decode_graph,
};
use hlorank_proto::v1;

use super::CallError;
use crate::{
    admission::Place,
    compute::{Class, ComputePool, WorkerFailed},
    device,
    model::Model,
};

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

/// Maximum size of a short batch once it is read.
const MAX_SHORT_BYTES: usize = 256 << 10;

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
        let set = model.manifest().features.named();
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
        if let (Some(found), Some(expected)) = (batch.columns(), self.columns)
            && found != expected
        {
            let source = ConfigurationError::WrongColumns { found, expected };
            return Err(CallError::Configuration { field, source });
        }
        // The rows of each configuration in a plan, as 32-bit numbers.
        let planned = self.graph.rows_per_config() * size_of::<u32>() + CONFIG_BYTES;
        let bytes = copies * self.bytes(batch) + batch.count() * planned;
        self.place.hold(bytes)?;
        Ok(class_of(batch.count()))
    }

    /// Whether a batch is so small that the thread that received the call reads and plans it, as far as other calls of that thread
    /// are concerned.
    pub(crate) fn is_short(&self, batch: &EncodedBatch) -> bool {
        let columns = self.graph.slots() + self.graph.rows_per_config();
        batch.count().saturating_mul(columns) <= device::RECEIVER_COLUMNS
            && self.bytes(batch) <= MAX_SHORT_BYTES
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

/// Maximum size of a part of a message that is decoded by the thread that takes the call. It takes less than a
/// millisecond.
pub(crate) const SMALL_PART_BYTES: usize = 64 << 10;

/// Decodes the parts of messages.
#[derive(Clone)]
pub(crate) struct Decoder {
    pool: Arc<ComputePool>,
    limits: Limits,
}

impl Decoder {
    /// Decodes large parts on a pool.
    pub(crate) fn new(pool: Arc<ComputePool>, limits: Limits) -> Self {
        Self { pool, limits }
    }

    /// Finds the form of the encoded batch of a field, and checks the number of its configurations. Returns `None` if it has no
    /// form.
    pub(crate) async fn batch(
        &self,
        field: &'static str,
        batch: Bytes,
    ) -> Result<Option<EncodedBatch>, CallError> {
        let limit = self.limits.configs;
        let read = move |batch: Bytes| {
            let batch = EncodedBatch::parse(&batch);
            let batch = batch.map_err(|source| CallError::Configuration { field, source })?;
            match &batch {
                Some(batch) if batch.count() > limit => Err(CallError::Configuration {
                    field: batch.field(),
                    source: ConfigurationError::TooMany {
                        found: batch.count(),
                        limit,
                    },
                }),
                _ => Ok(batch),
            }
        };
        let bytes = batch.len();
        work_on(&self.pool, bytes, SMALL_PART_BYTES, move || read(batch)).await?
    }

    /// Decodes an encoded graph.
    pub(crate) async fn graph(&self, graph: Bytes) -> Result<v1::Graph, CallError> {
        let limits = self.limits;
        let bytes = graph.len();
        let decode = move || decode_graph(graph, &limits);
        Ok(work_on(&self.pool, bytes, SMALL_PART_BYTES, decode).await??)
    }
}

/// Does work on this many bytes of a message: immediately if they are at most `few`, because they would wait for a busy worker
/// longer than the work takes, and otherwise on a worker.
pub(crate) async fn work_on<T: Send + 'static>(
    pool: &ComputePool,
    bytes: usize,
    few: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkerFailed> {
    if bytes <= few {
        return Ok(work());
    }
    Ok(pool.run(Class::Bulk, move |_| work()).await?.value)
}
