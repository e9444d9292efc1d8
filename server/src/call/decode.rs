//! Decodes the parts of requests that hold most of the bytes, with limits.

use std::sync::Arc;

use bytes::Bytes;
use hlorank_graph::{ConfigurationError, EncodedBatch, Limits, decode_graph};
use hlorank_proto::v1;

use super::CallError;
use crate::compute::{Class, ComputePool};

/// Maximum size of a part of a message that is decoded by the thread that takes the call. It takes less than a
/// millisecond.
const SMALL_PART_BYTES: usize = 64 << 10;

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
        let read = move |batch| {
            let batch = EncodedBatch::of(&batch);
            let batch = batch.map_err(|source| CallError::Configuration { field, source })?;
            match &batch {
                Some(batch) if batch.count() > limit => Err(too_many(batch, limit)),
                _ => Ok(batch),
            }
        };
        self.decode(batch, read).await
    }

    /// Decodes an encoded graph.
    pub(crate) async fn graph(&self, graph: Bytes) -> Result<v1::Graph, CallError> {
        let limits = self.limits;
        self.decode(graph, move |graph| {
            decode_graph(graph, &limits).map_err(CallError::Graph)
        })
        .await
    }

    /// Runs the decoder of a part of a message: on a worker if the part is large, because decoding takes milliseconds.
    async fn decode<T: Send + 'static>(
        &self,
        encoded: Bytes,
        decode: impl FnOnce(Bytes) -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        self.run(encoded.len(), move || decode(encoded)).await
    }

    /// Reads or writes a part of a message of this size: on a worker if the part is large.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
    ) -> Result<T, CallError> {
        // A small part would wait for a busy worker longer than it takes to decode.
        if bytes <= SMALL_PART_BYTES {
            return work();
        }
        self.pool.run(Class::Bulk, move |_| work()).await?.value
    }
}

fn too_many(batch: &EncodedBatch, limit: usize) -> CallError {
    let source = ConfigurationError::TooMany {
        found: batch.count(),
        limit,
    };
    CallError::Configuration {
        field: batch.field(),
        source,
    }
}
