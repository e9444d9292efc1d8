use std::sync::{Mutex, PoisonError};

use hlorank_graph::{Digest, FeatureGraph, Graph, GraphSource, MeasuredGraph, Task};
use hlorank_proto::v1::{self, graph::Source};
use tonic::metadata::{Ascii, MetadataValue};

/// The header with the route key. All calls about one graph have the same key, so that a load balancer can route them
/// to the replica that has the graph cached.
pub const ROUTE_HEADER: &str = "x-hlorank-route";

/// Context of the digest, which makes route keys differ from all other digests.
const ROUTE_PURPOSE: &str = "hlorank 2026-11 route key";

/// A graph at the client: its bytes, and its hash once a server has answered with it. Calls then send only the hash.
#[derive(Debug)]
pub struct GraphHandle {
    whole: v1::Graph,
    route: MetadataValue<Ascii>,
    hash: Mutex<Option<Digest>>,
}

impl GraphHandle {
    /// Returns the graph of a file: as its HLO module or HLO text if the file has one, otherwise as features.
    #[must_use]
    pub fn from_measured(measured: &MeasuredGraph) -> Self {
        let graph = &measured.graph;
        match &measured.source {
            GraphSource::HloModule(module) => {
                Self::hlo_module(module.clone(), graph.task(), graph.configurable().to_vec())
            }
            GraphSource::HloText(text) => {
                Self::hlo_text(text.clone(), graph.task(), graph.configurable().to_vec())
            }
            GraphSource::Features => match graph.feature_graph() {
                Some(graph) => Self::feature_graph(graph),
                None => Self::features(graph),
            },
        }
    }

    /// Returns the graph of a serialized `HloModuleProto` or `HloProto`. `configurable` lists the node of each slot of
    /// a layout. If it is empty, these are all convolutions, dots and reshapes.
    #[must_use]
    pub fn hlo_module(module: Vec<u8>, task: Task, configurable: Vec<u32>) -> Self {
        Self::new(Source::HloModule(module.into()), task, configurable)
    }

    /// Returns the graph of HLO text as XLA prints it, for example JAX's `as_hlo_text()`. `configurable` is as in
    /// [`hlo_module`](Self::hlo_module). Its nodes are numbered in the order in which the server reads them;
    /// [`put_graph`](crate::Client::put_graph) returns the numbers.
    #[must_use]
    pub fn hlo_text(text: String, task: Task, configurable: Vec<u32>) -> Self {
        Self::new(Source::HloText(text), task, configurable)
    }

    /// Returns a graph as arrays. Sequences are padded with −1 if their lengths are known, otherwise with 0.
    #[must_use]
    pub fn features(graph: &Graph) -> Self {
        Self::new(
            Source::Features(graph.to_features()),
            graph.task(),
            graph.configurable().to_vec(),
        )
    }

    /// Returns a graph of a named feature set.
    #[must_use]
    pub fn feature_graph(graph: &FeatureGraph) -> Self {
        Self::new(
            Source::FeatureGraph(graph.to_message()),
            Task::FeatureSet,
            Vec::new(),
        )
    }

    fn new(source: Source, task: Task, configurable_nodes: Vec<u32>) -> Self {
        let route = route_of(&source);
        let whole = v1::Graph {
            source: Some(source),
            task: v1::Task::from(task).into(),
            configurable_nodes,
        };
        Self {
            whole,
            route,
            hash: Mutex::new(None),
        }
    }

    /// Returns the graph of a message, or `None` if the message contains no graph or only a hash.
    #[must_use]
    pub fn of_message(whole: v1::Graph) -> Option<Self> {
        let route = whole
            .source
            .as_ref()
            .filter(|source| !matches!(source, Source::GraphHash(_)))
            .map(route_of)?;
        Some(Self {
            whole,
            route,
            hash: Mutex::new(None),
        })
    }

    /// Returns the graph hash, if a server has answered with it.
    #[must_use]
    pub fn hash(&self) -> Option<Digest> {
        *self.hash.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the hash, which is sent in place of the graph from now on.
    pub(crate) fn set_hash(&self, hash: Digest) {
        *self.hash.lock().unwrap_or_else(PoisonError::into_inner) = Some(hash);
    }

    /// Returns whether only a model can answer calls about the graph; a graph of a feature set may describe its set instead.
    pub(crate) fn needs_model(&self) -> bool {
        !matches!(self.whole.source, Some(Source::FeatureGraph(_)))
    }

    /// Returns the route key, the value of [`ROUTE_HEADER`].
    pub(crate) fn route(&self) -> &MetadataValue<Ascii> {
        &self.route
    }

    /// Returns the message with the graph itself.
    pub(crate) fn whole(&self) -> v1::Graph {
        self.whole.clone()
    }

    /// Returns the message with the hash in place of the graph, if the hash is known.
    pub(crate) fn by_hash(&self) -> Option<v1::Graph> {
        let hash = self.hash()?;
        Some(v1::Graph {
            source: Some(Source::GraphHash(hash.0.to_vec().into())),
            ..v1::Graph::default()
        })
    }
}

fn route_of(source: &Source) -> MetadataValue<Ascii> {
    let route = match source {
        Source::HloModule(bytes) | Source::GraphHash(bytes) => route_key([&bytes[..]]),
        Source::HloText(text) => route_key([text.as_bytes()]),
        Source::Features(arrays) => {
            let edges = little_endian(&arrays.edge_index);
            route_key([&arrays.node_opcode[..], &arrays.node_feat[..], &edges])
        }
        Source::FeatureGraph(graph) => {
            let edges = little_endian(&graph.edges);
            let graph_bytes = [
                graph.feature_set.as_bytes(),
                &graph.node_features[..],
                &edges,
            ];
            let instance = Some(graph.instance.as_bytes()).filter(|name| !name.is_empty());
            route_key(graph_bytes.into_iter().chain(instance))
        }
    };
    route
        .to_string()
        .parse()
        .expect("hexadecimal digits are ASCII")
}

fn route_key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    Digest::of_parts(ROUTE_PURPOSE, parts)
}

fn little_endian(numbers: &[u32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{FEATURES, GraphArrays, Limits, Pad};
    use hlorank_proto::v1::GraphFeatures;

    use super::*;

    fn graph(pad: Pad) -> Graph {
        let mut features = vec![0.0; 2 * FEATURES];
        if pad == Pad::MinusOne {
            // Where the sequence columns start: 31 in every row.
            features[31..37].fill(-1.0);
        }
        let arrays = GraphArrays::from_features(
            vec![63, 63],
            features,
            vec![[1, 0]],
            pad,
            &Limits::default(),
        );
        Graph::new(Task::Layout, arrays.unwrap(), vec![1]).unwrap()
    }

    fn sent_features(graph: &Graph) -> GraphFeatures {
        match GraphHandle::features(graph).whole().source {
            Some(Source::Features(features)) => features,
            other => panic!("{other:?} is not features"),
        }
    }

    #[test]
    fn features_are_padded_with_minus_one_if_lengths_are_known() {
        let sent = sent_features(&graph(Pad::MinusOne));
        assert_eq!(sent.pad_value, -1);
        assert_eq!(sent.node_feat[31 * 4..32 * 4], (-1.0_f32).to_le_bytes());
        assert_eq!(sent.edge_index, [1, 0]);
        let sent = sent_features(&graph(Pad::Zero));
        assert_eq!(sent.pad_value, 0);
        assert!(sent.node_feat.iter().all(|&byte| byte == 0));
    }
}
