use std::sync::Arc;

use bytes::Bytes;
use hlorank_graph::{
    Digest, GraphArrays, GraphError, HloModule, KernelMemory, Limits, ModuleExtent, Task,
};
use hlorank_proto::v1::{self, FeatureGraph, GraphFeatures, graph::Source as SentSource};
use prost::Message as _;

use super::{
    Source,
    read::{read_feature_graph, read_features, read_module},
};
use crate::{
    call::{Bounds, CallError},
    compute::Class,
    memory::{HeldBytes, MemoryFull},
};

/// Where a call's graph comes from.
pub(crate) enum GraphOrigin {
    /// The cache, by its hash.
    Hash(Digest),
    /// The call itself.
    Sent(SentGraph),
}

/// A graph that came with a call.
pub(crate) struct SentGraph {
    pub(crate) content: GraphContent,
    pub(crate) task: Task,
    /// The configurable nodes; empty for the default ones.
    pub(crate) configurable: Vec<u32>,
}

/// The form of a sent graph.
pub(crate) enum GraphContent {
    /// A serialized module.
    Module(Bytes),
    /// HLO text.
    Text(String),
    /// Arrays.
    Features(GraphFeatures),
    /// A graph of a named feature set.
    FeatureGraph(FeatureGraph),
}

impl GraphContent {
    /// Returns the content of a message; the hash if it has only that.
    pub(crate) fn from_message(source: SentSource) -> Result<Self, Bytes> {
        match source {
            SentSource::GraphHash(hash) => Err(hash),
            SentSource::HloModule(module) => Ok(Self::Module(module)),
            SentSource::HloText(text) => Ok(Self::Text(text)),
            SentSource::Features(features) => Ok(Self::Features(features)),
            SentSource::FeatureGraph(graph) => Ok(Self::FeatureGraph(graph)),
        }
    }
}

impl GraphContent {
    /// Returns the message of a program before fusion. Other graphs have a smaller message, which follows from what was read.
    fn into_program(self) -> Option<v1::Graph> {
        let source = match self {
            Self::Module(module) => SentSource::HloModule(module),
            Self::Text(text) => SentSource::HloText(text),
            Self::Features(_) | Self::FeatureGraph(_) => return None,
        };
        let task = v1::Task::from(Task::Fusion).into();
        Some(v1::Graph {
            source: Some(source),
            task,
            configurable_nodes: Vec::new(),
        })
    }
}

/// Maximum size of a small graph, which takes about a millisecond to read.
const INTERACTIVE_GRAPH_BYTES: usize = 64 << 10;

impl SentGraph {
    /// Checks its size before anything is copied.
    pub(crate) fn check(&self, bounds: &Bounds) -> Result<(), CallError> {
        let limit = bounds.graph_bytes;
        let check_sizes = |nodes, edge_ends: usize| {
            Ok(GraphArrays::check_sizes(
                nodes,
                edge_ends / 2,
                &bounds.limits,
            )?)
        };
        match &self.content {
            // How many nodes a module has shows only when it is read, so its bytes are limited.
            GraphContent::Module(bytes) => check_bytes("graph.hlo_module", bytes.len(), limit),
            GraphContent::Text(text) => check_bytes("graph.hlo_text", text.len(), limit),
            GraphContent::Features(features) => {
                check_sizes(features.node_opcode.len(), features.edge_index.len())
            }
            GraphContent::FeatureGraph(graph) => {
                // A flat space need not say that it has one node.
                let nodes = match graph.nodes as usize {
                    0 if graph.node_features.is_empty() => 1,
                    nodes => nodes,
                };
                check_sizes(nodes, graph.edges.len())
            }
        }
    }

    /// What its graph has, before it is read.
    fn extent(&self) -> ModuleExtent {
        match &self.content {
            GraphContent::Module(bytes) => ModuleExtent::of_message(bytes),
            GraphContent::Text(text) => ModuleExtent::of_text(text),
            GraphContent::Features(features) => ModuleExtent::of_nodes(features.node_opcode.len()),
            GraphContent::FeatureGraph(_) => ModuleExtent::default(),
        }
    }

    /// Returns whether reading it takes so little time that it comes before other work.
    pub(super) fn class(&self) -> Class {
        let bytes = match &self.content {
            GraphContent::Module(bytes) => bytes.len(),
            GraphContent::Text(text) => text.len(),
            GraphContent::Features(features) => {
                let numbers = features.edge_index.len() + features.operands.len();
                features.node_feat.len() + 4 * numbers
            }
            GraphContent::FeatureGraph(graph) => graph.node_features.len() + 4 * graph.edges.len(),
        };
        // Opcodes do not count: each is one byte, beside some hundred bytes of features.
        if bytes > INTERACTIVE_GRAPH_BYTES {
            Class::Bulk
        } else {
            Class::Interactive
        }
    }

    /// Returns a digest of the bytes of the graph and of all that is sent with them.
    pub(super) fn digest(&self) -> Digest {
        let task = self.task.to_string();
        let configurable = bytes_of(&self.configurable);
        let sent_with = [task.as_bytes(), &configurable];
        let digest = |content: &[&[u8]]| {
            let parts = sent_with.into_iter().chain(content.iter().copied());
            Digest::of_parts("hlorank 2026 graph source", parts)
        };
        match &self.content {
            GraphContent::Module(bytes) => digest(&[bytes]),
            // Two parts, so that it is not the digest of a module of these bytes.
            GraphContent::Text(text) => digest(&[b"text", text.as_bytes()]),
            GraphContent::Features(features) => {
                let edges = bytes_of(&features.edge_index);
                let pad = features.pad_value.to_le_bytes();
                let operands = bytes_of(&features.operands);
                let GraphFeatures {
                    node_opcode,
                    node_feat,
                    ..
                } = features;
                digest(&[node_opcode, node_feat, &edges, &pad, &operands])
            }
            // The whole message, so that no field is forgotten.
            GraphContent::FeatureGraph(graph) => digest(&[b"set", &graph.encode_to_vec()]),
        }
    }

    /// Reads, featurizes, prunes and cuts the graph. The kernels of a program count in a memory of all programs. What reading
    /// takes is held before, and until the caller has kept the graph.
    pub(crate) fn read(
        self,
        limits: &Limits,
        kernels: &Arc<KernelMemory>,
        account: impl Fn(usize) -> Result<HeldBytes, MemoryFull>,
    ) -> Result<(Source, HeldBytes), CallError> {
        let extent = self.extent();
        let mut held = account(match &self.content {
            // Its features are numbers of the message, and its names are in a table of their own.
            GraphContent::FeatureGraph(graph) => 4 * graph.encoded_len(),
            _ => extent.bytes(limits),
        })?;
        let mut read = self.read_within(&extent.limits(limits));
        if read
            .as_ref()
            .is_err_and(|error| extent.is_exceeded(error, limits))
        {
            let all = ModuleExtent::of_nodes(limits.nodes).bytes(limits);
            held.add(all.saturating_sub(extent.bytes(limits)))?;
            read = self.read_within(limits);
        }
        let source = read?;
        if self.task != Task::Fusion {
            return Ok((source, held));
        }
        source.graph.count_kernels_in(kernels);
        let program = self.content.into_program().map(Arc::new);
        Ok((Source { program, ..source }, held))
    }

    fn read_within(&self, limits: &Limits) -> Result<Source, GraphError> {
        let task = self.task;
        let configurable = self.configurable.clone();
        match &self.content {
            GraphContent::Module(bytes) => {
                read_module(HloModule::read(bytes, limits)?, task, configurable)
            }
            GraphContent::Text(text) => {
                read_module(HloModule::read_text(text, limits)?, task, configurable)
            }
            GraphContent::Features(features) => read_features(features, task, configurable, limits),
            GraphContent::FeatureGraph(graph) => read_feature_graph(graph, task, limits),
        }
    }
}

fn check_bytes(field: &'static str, found: usize, limit: usize) -> Result<(), CallError> {
    if found > limit {
        return Err(CallError::GraphBytes {
            field,
            found,
            limit,
        });
    }
    Ok(())
}

fn bytes_of(nodes: &[u32]) -> Vec<u8> {
    nodes.iter().flat_map(|node| node.to_le_bytes()).collect()
}
