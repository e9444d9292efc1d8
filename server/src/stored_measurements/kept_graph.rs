//! Graphs in the store of measurements: their messages, compressed.

use std::{
    io::{Read as _, Write as _},
    sync::Arc,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use hlorank_graph::{Digest, Graph, Limits, SegmentedGraph, decode_graph};
use hlorank_proto::v1;
use prost::Message as _;

use crate::{
    call::CallError,
    graphs::{GraphContent, SentGraph},
    store::{GraphKind, KeptGraph, MAX_GRAPH_BYTES, Reporter, StoreError},
};

/// Bytes that keeping a graph takes meanwhile: its message, and the same compressed.
pub(super) fn kept_bytes(graph: &Graph) -> usize {
    2 * graph.bytes()
}

/// Returns a graph for the store; nothing if its message is too large. `program` is the message of a program before fusion,
/// whose kernels need the module.
pub(super) fn keep(
    graph: &Graph,
    program: Option<&v1::Graph>,
    reporter: Reporter,
) -> Result<Option<KeptGraph>, CallError> {
    let message = program.cloned().or_else(|| graph.to_message());
    let message = message.ok_or_else(|| CallError::GraphNotCached { hash: graph.hash() })?;
    if message.encoded_len() > MAX_GRAPH_BYTES {
        return Ok(None);
    }
    // Columns of features are mostly zeros, so more effort gains little.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(&message.encode_to_vec());
    let compressed = written.and_then(|()| encoder.finish());
    Ok(Some(KeptGraph {
        kind: GraphKind {
            task: graph.task(),
            structure: graph.structure(),
            reporter,
        },
        message: compressed.map_err(|error| failed(&error))?,
    }))
}

/// Returns the message of a graph of the store.
pub(super) fn message_of(kept: &KeptGraph, limits: &Limits) -> Result<v1::Graph, CallError> {
    // A broken or hostile file may decompress to anything, so that no more is read than was ever
    // kept.
    let mut message = Vec::new();
    let read = GzDecoder::new(&*kept.message)
        .take(MAX_GRAPH_BYTES as u64)
        .read_to_end(&mut message);
    read.map_err(|error| failed(&error))?;
    decode_graph(message.into(), limits).map_err(CallError::Graph)
}

/// Reads a graph of the store, which has to have this hash.
pub(super) fn graph_of(
    kept: &KeptGraph,
    hash: Digest,
    limits: &Limits,
) -> Result<Arc<SegmentedGraph>, CallError> {
    let message = message_of(kept, limits)?;
    let content = message
        .source
        .and_then(|source| GraphContent::from_message(source).ok());
    // As if a call sent it.
    let sent = SentGraph {
        content: content.ok_or_else(|| failed(&"a kept graph has no content"))?,
        task: kept.kind.task,
        configurable: message.configurable_nodes,
    };
    let read = sent.read(limits).map_err(CallError::Graph)?;
    // Measurements of another graph would be learned from as if they were of this one.
    if read.graph.hash != hash {
        return Err(failed(&"a kept graph has another hash"));
    }
    Ok(read.graph)
}

fn failed(detail: &dyn ToString) -> CallError {
    StoreError::Failed(detail.to_string()).into()
}
