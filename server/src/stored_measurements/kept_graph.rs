//! Graphs in the store of measurements: their messages, compressed.

use std::{io::Read as _, sync::Arc};

use hlorank_graph::{Digest, Graph, Limits, SegmentedGraph, decode_graph};
use hlorank_proto::v1;
use prost::Message as _;

use crate::{
    call::CallError,
    graphs::{GraphContent, SentGraph},
    store::{KeptGraph, MAX_GRAPH_BYTES, Reporter, StoreError},
};

/// Compression level of zstd. Columns of features are mostly zeros, so higher ones gain little.
const LEVEL: i32 = 3;

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
    let message =
        zstd::bulk::compress(&message.encode_to_vec(), LEVEL).map_err(|error| failed(&error))?;
    let task = graph.task();
    let structure = graph.structure();
    let reporter = Some(reporter);
    Ok(Some(KeptGraph {
        task,
        structure,
        message,
        reporter,
    }))
}

/// Returns the message of a graph of the store.
pub(super) fn message_of(kept: &KeptGraph, limits: &Limits) -> Result<v1::Graph, CallError> {
    let mut message = Vec::new();
    let read = zstd::Decoder::new(&*kept.message).and_then(|decoder| {
        decoder
            .take(MAX_GRAPH_BYTES as u64)
            .read_to_end(&mut message)
    });
    read.map_err(|error| failed(&error))?;
    decode_graph(message.into(), limits).map_err(CallError::Graph)
}

/// Reads a graph of the store, which has to have this hash.
pub(super) fn graph_of(
    kept: &KeptGraph,
    hash: Digest,
    limits: &Limits,
) -> Result<Arc<SegmentedGraph>, CallError> {
    let v1::Graph {
        source,
        configurable_nodes,
        ..
    } = message_of(kept, limits)?;
    let content = source.and_then(|source| GraphContent::of(source).ok());
    let content = content.ok_or_else(|| failed(&"a kept graph has no content"))?;
    let sent = SentGraph {
        content,
        task: kept.task,
        configurable: configurable_nodes,
    };
    let source = sent.read(limits).map_err(CallError::Graph)?;
    if source.graph.hash != hash {
        return Err(failed(&"a kept graph has another hash"));
    }
    Ok(source.graph)
}

fn failed(detail: &dyn ToString) -> CallError {
    StoreError::Failed(detail.to_string()).into()
}
