//! Reads the graph of a request.

use std::sync::Arc;

use bytes::Bytes;
use hlorank_graph::{
    Digest, FEATURES, Graph, GraphArrays, GraphError, HloModule, Limits, NodeDescription, Pad, Scope,
    SegmentedGraph, Task, is_usually_configurable,
};
use hlorank_proto::v1::{self, GraphFeatures};

use super::ServiceError;
use crate::{
    compute::Class,
    graphs::{Source, Warning},
};

/// A graph that came with a request, its task settled.
pub(super) struct GraphRequest {
    content: Content,
    task: Task,
    configurable: Vec<u32>,
}

/// What a graph came as.
enum Content {
    /// A serialized module.
    Module(Bytes),
    /// HLO text.
    Text(String),
    /// Arrays.
    Features(GraphFeatures),
}

/// Where a request's graph is to be had.
pub(super) enum GraphOrigin {
    /// In the cache, if at all.
    Hash(Digest),
    /// In the request.
    Sent(GraphRequest),
}

/// Of a small graph at most: it takes a millisecond.
const INTERACTIVE_GRAPH_BYTES: usize = 64 << 10;

const GRAPH_HINT: &str = "set graph_hash, hlo_module, hlo_text or features";

impl GraphOrigin {
    /// Takes a request's graph; `task` is that of the batch that comes with it.
    pub(super) fn read(graph: Option<v1::Graph>, task: Option<Task>) -> Result<Self, ServiceError> {
        let graph = graph.ok_or(ServiceError::Missing { field: "graph", hint: GRAPH_HINT })?;
        let said = read_task(graph.task)?;
        let source = graph.source.ok_or(ServiceError::Missing { field: "graph.source", hint: GRAPH_HINT })?;
        let content = match source {
            v1::graph::Source::GraphHash(hash) => return read_hash(&hash).map(Self::Hash),
            v1::graph::Source::HloModule(module) => Content::Module(module),
            v1::graph::Source::HloText(text) => Content::Text(text),
            v1::graph::Source::Features(features) => Content::Features(features),
        };
        let task = said.or(task).ok_or(ServiceError::Missing {
            field: "graph.task",
            hint: "TASK_TILE for a kernel, TASK_LAYOUT for a module whose layouts are tuned",
        })?;
        Ok(Self::Sent(GraphRequest { content, task, configurable: graph.configurable_nodes }))
    }
}

fn read_task(task: i32) -> Result<Option<Task>, ServiceError> {
    let wire = v1::Task::try_from(task).ok();
    if wire == Some(v1::Task::Unspecified) {
        return Ok(None);
    }
    let known = wire.and_then(Task::from_wire);
    let known = known.ok_or_else(|| ServiceError::Invalid {
        field: "graph.task",
        found: task.to_string(),
        expected: Task::ALL
            .map(|task| format!("{} ({})", task.kind().wire.as_str_name(), task.kind().number()))
            .join(" or "),
    })?;
    Ok(Some(known))
}

fn read_hash(hash: &[u8]) -> Result<Digest, ServiceError> {
    let digest = <[u8; 32]>::try_from(hash).map(Digest);
    digest.map_err(|_| ServiceError::Invalid {
        field: "graph.graph_hash",
        found: format!("{} bytes long", hash.len()),
        expected: "32 bytes".to_owned(),
    })
}

impl GraphRequest {
    /// Identifies the bytes of the graph and all that is given with them.
    pub(super) fn digest(&self) -> Digest {
        let task = self.task.to_string();
        let configurable: Vec<u8> = self.configurable.iter().flat_map(|node| node.to_le_bytes()).collect();
        let mut parts: Vec<&[u8]> = vec![task.as_bytes(), &configurable];
        let (edges, pad);
        match &self.content {
            Content::Module(bytes) => parts.push(bytes),
            // Two parts, so that it is not the digest of a module of these bytes.
            Content::Text(text) => parts.extend([&b"text"[..], text.as_bytes()]),
            Content::Features(features) => {
                edges = features.edge_index.iter().flat_map(|node| node.to_le_bytes()).collect::<Vec<u8>>();
                pad = features.pad_value.to_le_bytes();
                parts.extend([&features.node_opcode[..], &features.node_feat, &edges, &pad]);
            }
        }
        Digest::of_parts("hlorank 2026 graph source", parts)
    }

    /// Whether reading it may hold up others.
    pub(super) fn class(&self) -> Class {
        let bytes = match &self.content {
            Content::Module(bytes) => bytes.len(),
            Content::Text(text) => text.len(),
            Content::Features(features) => features.node_feat.len() + 4 * features.edge_index.len(),
        };
        if bytes > INTERACTIVE_GRAPH_BYTES { Class::Bulk } else { Class::Interactive }
    }

    /// Checks what the limits bound before anything is copied.
    pub(super) fn check(&self, graph_bytes: usize, limits: &Limits) -> Result<(), ServiceError> {
        match &self.content {
            Content::Module(bytes) => check_bytes("graph.hlo_module", bytes.len(), graph_bytes),
            Content::Text(text) => check_bytes("graph.hlo_text", text.len(), graph_bytes),
            Content::Features(features) => {
                let edges = features.edge_index.len() / 2;
                GraphArrays::check_sizes(features.node_opcode.len(), edges, limits)
                    .map_err(ServiceError::Graph)
            }
        }
    }

    /// Reads, featurizes, prunes and cuts the graph.
    pub(super) fn segmented(self, limits: &Limits) -> Result<Source, GraphError> {
        match &self.content {
            Content::Module(bytes) => {
                read_module(HloModule::read(bytes, limits)?, self.task, self.configurable)
            }
            Content::Text(text) => {
                read_module(HloModule::read_text(text, limits)?, self.task, self.configurable)
            }
            Content::Features(features) => read_features(features, self.task, self.configurable, limits),
        }
    }
}

fn check_bytes(field: &'static str, found: usize, limit: usize) -> Result<(), ServiceError> {
    if found > limit { Err(ServiceError::GraphBytes { field, found, limit }) } else { Ok(()) }
}

fn read_module(module: HloModule<'_>, task: Task, configurable: Vec<u32>) -> Result<Source, GraphError> {
    let configurable = configurable_or_default(task, configurable, &module.arrays);
    let names: Vec<&str> = module.unknown_opcodes.keys().map(String::as_str).collect();
    let mut warnings = unknown_opcodes(module.unknown_opcodes.values().sum(), &names);
    let (graph, nodes) = module.into_described_graph(task, configurable)?;
    warnings.extend(unusual_nodes(&graph));
    Ok(Source { graph: Arc::new(SegmentedGraph::new(&graph)), nodes, warnings })
}

fn read_features(
    features: &GraphFeatures,
    task: Task,
    configurable: Vec<u32>,
    limits: &Limits,
) -> Result<Source, GraphError> {
    let pad =
        Pad::from_value(features.pad_value).ok_or(GraphError::PadValue { found: features.pad_value })?;
    let arrays = GraphArrays::from_features(
        features.node_opcode.to_vec(),
        read_floats(&features.node_feat, features.node_opcode.len())?,
        read_edges(&features.edge_index)?,
        pad,
        limits,
    )?;
    let configurable = configurable_or_default(task, configurable, &arrays);
    let graph = Graph::new(task, arrays, configurable)?;
    let mut warnings = unknown_opcodes(graph.unknown_opcodes(), &[]);
    warnings.extend(unusual_nodes(&graph));
    let node = |&node: &u32| NodeDescription {
        node,
        name: String::new(),
        opcode: hlorank_graph::opcode_name(graph.opcodes()[node as usize]).to_owned(),
        dimensions: Vec::new(),
        tensor_ranks: Vec::new(),
    };
    let nodes = graph.configurable().iter().map(node).collect();
    Ok(Source { graph: Arc::new(SegmentedGraph::new(&graph)), nodes, warnings })
}

fn read_floats(bytes: &[u8], nodes: usize) -> Result<Vec<f32>, GraphError> {
    let (quads, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        let expected = nodes * FEATURES * size_of::<f32>();
        return Err(GraphError::ArrayLength { array: "node_feat (in bytes)", found: bytes.len(), expected });
    }
    Ok(quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect())
}

fn read_edges(nodes: &[u32]) -> Result<Vec<[u32; 2]>, GraphError> {
    let (edges, rest) = nodes.as_chunks::<2>();
    if !rest.is_empty() {
        let expected = 2 * (edges.len() + 1);
        return Err(GraphError::ArrayLength { array: "edge_index", found: nodes.len(), expected });
    }
    Ok(edges.to_vec())
}

fn configurable_or_default(task: Task, configurable: Vec<u32>, arrays: &GraphArrays) -> Vec<u32> {
    match task.kind().scope {
        Scope::Nodes if configurable.is_empty() => arrays.default_configurable(),
        _ => configurable,
    }
}

fn unknown_opcodes(nodes: usize, names: &[&str]) -> Vec<Warning> {
    if nodes == 0 {
        return Vec::new();
    }
    let shown: Vec<&str> = names.iter().copied().take(8).collect();
    let names = if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) };
    let message =
        format!("{nodes} nodes have an opcode that the model does not know{names}; they count as unknown");
    vec![Warning { reason: "UNKNOWN_OPCODES", message }]
}

/// Models have seen only convolutions, dots and reshapes configured.
fn unusual_nodes(graph: &Graph) -> Option<Warning> {
    let unusual = |node: &&u32| !is_usually_configurable(graph.opcodes()[**node as usize]);
    let count = graph.configurable().iter().filter(unusual).count();
    (count > 0).then(|| Warning {
        reason: "UNUSUAL_CONFIGURABLE_NODES",
        message: format!("{count} configurable nodes are neither convolution, dot nor reshape"),
    })
}
