use std::sync::Arc;

use bytes::Bytes;
use hlorank_graph::{Digest, GraphArrays, GraphError, HloModule, Limits, Task};
use hlorank_proto::v1::{self, FeatureGraph, GraphFeatures, graph::Source as SentSource};
use prost::Message as _;

use super::{
    Source,
    read::{read_feature_graph, read_features, read_module},
};
use crate::{
    call::{Bounds, CallError},
    compute::Class,
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
    pub(crate) fn of(source: SentSource) -> Result<Self, Bytes> {
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
        let (field, found) = match &self.content {
            GraphContent::Module(bytes) => ("graph.hlo_module", bytes.len()),
            GraphContent::Text(text) => ("graph.hlo_text", text.len()),
            GraphContent::Features(features) => {
                let nodes = features.node_opcode.len();
                let edges = features.edge_index.len() / 2;
                return GraphArrays::check_sizes(nodes, edges, &bounds.limits)
                    .map_err(CallError::Graph);
            }
            GraphContent::FeatureGraph(graph) => {
                // A flat space need not say that it has one node.
                let nodes = match graph.nodes as usize {
                    0 if graph.node_features.is_empty() => 1,
                    nodes => nodes,
                };
                let edges = graph.edges.len() / 2;
                return GraphArrays::check_sizes(nodes, edges, &bounds.limits)
                    .map_err(CallError::Graph);
            }
        };
        if found > limit {
            Err(CallError::GraphBytes {
                field,
                found,
                limit,
            })
        } else {
            Ok(())
        }
    }

    /// Returns whether reading it takes so little time that it comes before other work.
    pub(super) fn class(&self) -> Class {
        let bytes = match &self.content {
            GraphContent::Module(bytes) => bytes.len(),
            GraphContent::Text(text) => text.len(),
            GraphContent::Features(features) => {
                features.node_feat.len() + 4 * features.edge_index.len()
            }
            GraphContent::FeatureGraph(graph) => graph.node_features.len() + 4 * graph.edges.len(),
        };
        if bytes > INTERACTIVE_GRAPH_BYTES {
            Class::Bulk
        } else {
            Class::Interactive
        }
    }

    /// Returns a digest of the bytes of the graph and of all that is sent with them.
    pub(super) fn digest(&self) -> Digest {
        let task = self.task.to_string();
        let configurable: Vec<u8> = self
            .configurable
            .iter()
            .flat_map(|node| node.to_le_bytes())
            .collect();
        let mut parts: Vec<&[u8]> = vec![task.as_bytes(), &configurable];
        let (rest, pad);
        match &self.content {
            GraphContent::Module(bytes) => parts.push(bytes),
            // Two parts, so that it is not the digest of a module of these bytes.
            GraphContent::Text(text) => parts.extend([&b"text"[..], text.as_bytes()]),
            GraphContent::Features(features) => {
                rest = features
                    .edge_index
                    .iter()
                    .flat_map(|node| node.to_le_bytes())
                    .collect::<Vec<u8>>();
                pad = features.pad_value.to_le_bytes();
                parts.extend([&features.node_opcode[..], &features.node_feat, &rest, &pad]);
            }
            GraphContent::FeatureGraph(graph) => {
                // The whole message, so that no field is forgotten.
                rest = graph.encode_to_vec();
                parts.extend([&b"set"[..], &rest]);
            }
        }
        Digest::of_parts("hlorank 2026 graph source", parts)
    }

    /// Reads, featurizes, prunes and cuts the graph.
    pub(crate) fn read(self, limits: &Limits) -> Result<Source, GraphError> {
        let source = match &self.content {
            GraphContent::Module(bytes) => read_module(
                HloModule::read(bytes, limits)?,
                self.task,
                self.configurable,
            ),
            GraphContent::Text(text) => read_module(
                HloModule::read_text(text, limits)?,
                self.task,
                self.configurable,
            ),
            GraphContent::Features(features) => {
                read_features(features, self.task, self.configurable, limits)
            }
            GraphContent::FeatureGraph(graph) => read_feature_graph(graph, self.task, limits),
        }?;
        let program = if self.task == Task::Fusion {
            self.content.into_program()
        } else {
            None
        };
        Ok(Source {
            program: program.map(Arc::new),
            ..source
        })
    }
}
