//! Reads what a request holds into the types of the graph crate.

use std::sync::Arc;

use hlorank_graph::{
    ConfigurationError, Configurations, Digest, FEATURES, Graph, GraphArrays, GraphError, HloModule,
    LayoutBatch, Limits, Pad, SegmentedGraph, Task, TileBatch,
};
use hlorank_proto::v1::{self, graph::Source as GraphSource, rank_configs_request::Configs};

use super::ServiceError;
use crate::graphs::{Source, Warning};

/// A request's graph, its task settled.
pub(super) struct GraphRequest {
    source: GraphSource,
    task: Task,
    configurable: Vec<u32>,
}

/// Where a request's graph is to be had.
pub(super) enum GraphOrigin {
    /// In the cache, if at all.
    Hash(Digest),
    /// In the request.
    Sent(GraphRequest),
}

const GRAPH_HINT: &str = "set graph_hash, hlo_module or features";

impl GraphOrigin {
    /// Takes a request's graph; `task` is that of the batch that comes with it.
    pub(super) fn read(graph: Option<v1::Graph>, task: Option<Task>) -> Result<Self, ServiceError> {
        let graph = graph.ok_or(ServiceError::Missing { field: "graph", hint: GRAPH_HINT })?;
        let said = read_task(graph.task)?;
        let source = graph.source.ok_or(ServiceError::Missing { field: "graph.source", hint: GRAPH_HINT })?;
        if let GraphSource::GraphHash(hash) = source {
            return read_hash(&hash).map(Self::Hash);
        }
        let task = said.or(task).ok_or(ServiceError::Missing {
            field: "graph.task",
            hint: "TASK_TILE for a kernel, TASK_LAYOUT for a module whose layouts are tuned",
        })?;
        Ok(Self::Sent(GraphRequest { source, task, configurable: graph.configurable_nodes }))
    }
}

fn read_task(task: i32) -> Result<Option<Task>, ServiceError> {
    match v1::Task::try_from(task) {
        Ok(v1::Task::Unspecified) => Ok(None),
        Ok(v1::Task::Tile) => Ok(Some(Task::Tile)),
        Ok(v1::Task::Layout) => Ok(Some(Task::Layout)),
        Err(_) => Err(ServiceError::Invalid {
            field: "graph.task",
            found: task.to_string(),
            expected: "TASK_TILE (1) or TASK_LAYOUT (2)".to_owned(),
        }),
    }
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
        let task = [match self.task {
            Task::Tile => 1_u8,
            Task::Layout => 2,
        }];
        let configurable: Vec<u8> = self.configurable.iter().flat_map(|node| node.to_le_bytes()).collect();
        let mut parts: Vec<&[u8]> = vec![&task, &configurable];
        let (edges, pad);
        match &self.source {
            GraphSource::GraphHash(bytes) | GraphSource::HloModule(bytes) => parts.push(bytes),
            GraphSource::Features(features) => {
                edges = features.edge_index.iter().flat_map(|node| node.to_le_bytes()).collect::<Vec<u8>>();
                pad = features.pad_value.to_le_bytes();
                parts.extend([&features.node_opcode[..], &features.node_feat, &edges, &pad]);
            }
        }
        Digest::of_parts("hlorank 2026 graph source", parts)
    }

    /// Bytes of a serialized module; 0 for features, whose arrays are bounded by their counts.
    pub(super) fn module_bytes(&self) -> usize {
        match &self.source {
            GraphSource::HloModule(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Reads, featurizes, prunes and cuts the graph.
    pub(super) fn segmented(self, limits: &Limits) -> Result<Source, GraphError> {
        match self.source {
            GraphSource::Features(features) => read_features(&features, self.task, self.configurable, limits),
            GraphSource::HloModule(bytes) | GraphSource::GraphHash(bytes) => {
                read_module(&bytes, self.task, self.configurable, limits)
            }
        }
    }
}

fn read_module(
    bytes: &[u8],
    task: Task,
    configurable: Vec<u32>,
    limits: &Limits,
) -> Result<Source, GraphError> {
    let module = HloModule::read(bytes, limits)?;
    let configurable = configurable_or_default(task, configurable, &module.arrays);
    let nodes = configurable.iter().filter_map(|&node| module.describe(node)).collect();
    let names: Vec<&str> = module.unknown_opcodes.keys().map(String::as_str).collect();
    let mut warnings = unknown_opcodes(module.unknown_opcodes.values().sum(), &names);
    let graph = module.into_graph(task, configurable)?;
    warnings.extend(unusual_nodes(&graph));
    Ok(Source { graph: Arc::new(SegmentedGraph::new(&graph)), nodes, warnings })
}

fn read_features(
    features: &v1::GraphFeatures,
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
    let node = |&node: &u32| hlorank_graph::NodeDescription {
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
    match task {
        Task::Layout if configurable.is_empty() => arrays.default_configurable(),
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
    let usual = [hlorank_graph::CONVOLUTION, hlorank_graph::DOT, hlorank_graph::RESHAPE];
    let unusual = |node: &&u32| !usual.contains(&graph.opcodes()[**node as usize]);
    let count = graph.configurable().iter().filter(unusual).count();
    (count > 0).then(|| Warning {
        reason: "UNUSUAL_CONFIGURABLE_NODES",
        message: format!("{count} configurable nodes are neither convolution, dot nor reshape"),
    })
}

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs or \
                            packed_tile_configs";

/// The task of a batch.
pub(super) fn batch_task(configs: Option<&Configs>) -> Result<Task, ServiceError> {
    match configs {
        None => Err(ServiceError::Missing { field: "configs", hint: CONFIGS_HINT }),
        Some(Configs::TileConfigs(_) | Configs::PackedTileConfigs(_)) => Ok(Task::Tile),
        Some(_) => Ok(Task::Layout),
    }
}

/// Reads a batch against its graph.
pub(super) fn read_configs(
    configs: &Configs,
    graph: &SegmentedGraph,
    limits: &Limits,
) -> Result<Configurations, ServiceError> {
    let field = field(configs);
    let refused = |source| ServiceError::Configuration { field, source };
    let batch = batch_task(Some(configs))?;
    if batch != graph.task {
        return Err(refused(ConfigurationError::WrongTask { batch, graph: graph.task }));
    }
    if graph.task == Task::Layout && graph.slots() == 0 {
        return Err(refused(ConfigurationError::NothingToConfigure));
    }
    let configurations = match configs {
        Configs::LayoutConfigs(message) => {
            LayoutBatch::from_readable(message, &graph.configurable, limits).map(Configurations::Layout)
        }
        Configs::PackedLayoutConfigs(message) => {
            LayoutBatch::from_packed(message, graph.slots(), limits).map(Configurations::Layout)
        }
        Configs::DeltaLayoutConfigs(message) => {
            LayoutBatch::from_delta(message, graph.slots(), limits).map(Configurations::Layout)
        }
        Configs::TileConfigs(message) => TileBatch::from_readable(message, limits).map(Configurations::Tile),
        Configs::PackedTileConfigs(message) => {
            TileBatch::from_packed(message, limits).map(Configurations::Tile)
        }
    };
    configurations.map_err(refused)
}

fn field(configs: &Configs) -> &'static str {
    match configs {
        Configs::LayoutConfigs(_) => "layout_configs",
        Configs::PackedLayoutConfigs(_) => "packed_layout_configs",
        Configs::DeltaLayoutConfigs(_) => "delta_layout_configs",
        Configs::TileConfigs(_) => "tile_configs",
        Configs::PackedTileConfigs(_) => "packed_tile_configs",
    }
}
