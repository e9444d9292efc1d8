//! Decodes the graph of a request. Its lists of numbers are counted before, because they take several times their size
//! once decoded.

use bytes::Bytes;
use hlorank_proto::v1;
use prost::Message as _;

use crate::{
    GraphError, Limits, OperandLists,
    wire::{WireError, count_numbers, messages},
};

/// Number of the field `Graph.configurable_nodes`.
const CONFIGURABLE_NODES: u32 = 5;

/// Numbers of the fields of messages with edges, and of the edges in them: `features` and `feature_graph`.
const EDGES: [(u32, u32); 2] = [(FEATURES, 3), (7, 4)];

/// Numbers of the field `features`, and of `operands` in it.
const FEATURES: u32 = 3;
const OPERANDS: u32 = 5;

/// Decodes an encoded `Graph` with lists of at most as many numbers as the limits allow. Bytes are not copied.
pub fn decode_graph(graph: Bytes, limits: &Limits) -> Result<v1::Graph, GraphError> {
    if count_numbers(&graph, CONFIGURABLE_NODES)? > limits.nodes {
        return Err(GraphError::too_many_nodes(limits));
    }
    for (field, edges) in EDGES {
        let ends = messages(&graph, field).try_fold(0, |ends, message| {
            Ok::<_, WireError>(ends + count_numbers(message?, edges)?)
        })?;
        if ends / 2 > limits.edges {
            return Err(GraphError::too_many_edges(limits));
        }
    }
    let operands = messages(&graph, FEATURES).try_fold(0, |operands, message| {
        Ok::<_, WireError>(operands + count_numbers(message?, OPERANDS)?)
    })?;
    if operands > OperandLists::max_numbers(limits) {
        return Err(GraphError::too_many_edges(limits));
    }
    v1::Graph::decode(graph).map_err(|error| GraphError::Encoding {
        detail: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::{FeatureGraph, Graph, GraphFeatures, graph::Source};

    use super::*;

    const LIMITS: Limits = Limits {
        nodes: 3,
        edges: 2,
        configs: 0,
        config_entries: 0,
    };

    #[test]
    fn lists_are_decoded_up_to_the_limits() {
        let edges = |count| {
            Source::Features(GraphFeatures {
                edge_index: vec![1; count],
                ..GraphFeatures::default()
            })
        };
        let operands = |count| {
            Source::Features(GraphFeatures {
                operands: vec![1; count],
                ..GraphFeatures::default()
            })
        };
        let edges_of_a_set = |count| {
            Source::FeatureGraph(FeatureGraph {
                edges: vec![1; count],
                ..FeatureGraph::default()
            })
        };
        let most = OperandLists::max_numbers(&LIMITS);
        for (source, configurable_nodes, refused) in [
            (edges(4), 3, None),
            // The checks of arrays refuse half an edge.
            (edges(5), 0, None),
            (edges(6), 0, Some("edges")),
            (edges(0), 4, Some("nodes")),
            (operands(most), 0, None),
            (operands(most + 1), 0, Some("edges")),
            (edges_of_a_set(4), 0, None),
            (edges_of_a_set(6), 0, Some("edges")),
        ] {
            let graph = Graph {
                source: Some(source),
                configurable_nodes: vec![1; configurable_nodes],
                ..Graph::default()
            };
            match (decode_graph(graph.encode_to_vec().into(), &LIMITS), refused) {
                (Ok(decoded), None) => assert_eq!(decoded, graph),
                (Err(error), Some(what)) => assert!(error.to_string().contains(what), "{error}"),
                (decoded, _) => panic!("{decoded:?} of {graph:?}"),
            }
        }
    }

    #[test]
    fn bytes_that_are_no_graph_are_refused() {
        for wrong in [&b"\x1a"[..], b"\x2a\x01\x80", b"\x20\xff"] {
            let refused = decode_graph(Bytes::copy_from_slice(wrong), &LIMITS);
            assert!(
                matches!(refused, Err(GraphError::Encoding { .. })),
                "{wrong:?}"
            );
        }
    }
}
