//! Requests that are small on the wire or in memory, but claim a lot of work.

use std::io::Read;

use flate2::{Compression, read::GzEncoder};
use hlorank_graph::FEATURES;
use hlorank_proto::{
    v1::{
        Graph, GraphFeatures, LayoutConfig, LayoutConfigs, PackedFusionConfigs, Task,
        config_batch::Configs, graph::Source,
    },
    xla::{HloInstructionProto, ShapeProto},
};
use prost::{Message as _, bytes::Bytes};

use crate::{
    graph_of, graph_of_module, kernel_graph,
    module::{operation, single},
    rank_request, repeated_tiles,
};

/// Returns serialized requests about graphs with numbers that are valid but overflow when they are multiplied: finite
/// features and dimensions, for both tasks.
pub fn huge_graphs() -> Vec<Vec<u8>> {
    let features = [1e19, f32::MAX].map(huge_features);
    let graphs = features
        .into_iter()
        .chain([graph_of_module(huge_dimensions())]);
    let tiles = || Configs::PackedTileConfigs(repeated_tiles(4, 2));
    let layouts = || {
        Configs::LayoutConfigs(LayoutConfigs {
            configs: vec![LayoutConfig::default(); 2],
        })
    };
    let requests = graphs.flat_map(|graph| {
        let layout_graph = Graph {
            configurable_nodes: vec![1],
            ..graph.clone()
        };
        [
            rank_request(kernel_graph(graph), tiles()),
            rank_request(layout_graph, layouts()),
        ]
    });
    requests.map(|request| request.encode_to_vec()).collect()
}

/// Returns a request about a program whose chain of `length` nodes is fused into each of `users` nodes, with this number of
/// configurations.
pub fn fused_chain(length: usize, users: usize, configs: u32) -> Vec<u8> {
    let program = Graph {
        source: Some(Source::HloText(chain_text(length, users))),
        task: Task::Fusion.into(),
        ..Graph::default()
    };
    // The nodes of the chain that a user reads in its kernel are slots, and stand in the order of the text.
    let fused = (0..configs as usize).flat_map(|written| all_fused_but(length, &[written]));
    let fusions = PackedFusionConfigs {
        config_count: configs,
        fused: fused.collect::<Vec<u8>>().into(),
    };
    rank_request(program, Configs::PackedFusionConfigs(fusions)).encode_to_vec()
}

/// Returns the bits of a configuration that fuses all slots but some.
pub fn all_fused_but(slots: usize, written: &[usize]) -> Vec<u8> {
    let mut bits = vec![0; slots.div_ceil(8)];
    let fused = (0..slots).filter(|slot| !written.contains(slot));
    fused.for_each(|slot| bits[slot / 8] |= 1 << (slot % 8));
    bits
}

/// Returns a program of a chain of nodes, the last of which has this number of users.
pub fn chain_text(length: usize, users: usize) -> String {
    let start = "HloModule chain\n\nENTRY main {\n  c0 = f32[8] parameter(0)\n".to_owned();
    let chain = (1..=length).map(|node| format!("  c{node} = f32[8] negate(c{})\n", node - 1));
    let readers = (0..users).map(|user| format!("  u{user} = f32[8] exponential(c{length})\n"));
    let names: Vec<String> = (0..users).map(|user| format!("u{user}")).collect();
    let shape = vec!["f32[8]"; users].join(", ");
    let root = format!("  ROOT all = ({shape}) tuple({})\n}}\n", names.join(", "));
    [start]
        .into_iter()
        .chain(chain)
        .chain(readers)
        .chain([root])
        .collect()
}

fn huge_dimensions() -> Vec<u8> {
    let shape = ShapeProto {
        element_type: 11,
        dimensions: vec![i64::MAX; 4],
        ..ShapeProto::default()
    };
    let huge = |instruction| HloInstructionProto {
        shape: Some(shape.clone()),
        ..instruction
    };
    single(vec![
        huge(operation("parameter", 1, &[])),
        huge(operation("dot", 2, &[1, 1])),
    ])
}

fn huge_features(feature: f32) -> Graph {
    const NODES: usize = 3;
    graph_of(Source::Features(GraphFeatures {
        node_opcode: vec![1; NODES].into(),
        node_feat: [feature; NODES * FEATURES]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        edge_index: vec![1, 0, 2, 1],
        ..GraphFeatures::default()
    }))
}

/// Compresses a message.
///
/// # Panics
/// Never, because vectors grow.
pub fn gzip(message: impl Read) -> Vec<u8> {
    let mut compressed = Vec::new();
    GzEncoder::new(message, Compression::best())
        .read_to_end(&mut compressed)
        .expect("a vector grows");
    compressed
}

/// Returns a message as it is in the body of a call.
///
/// # Panics
/// If the message has 4 GiB.
pub fn framed(message: &[u8], is_compressed: bool) -> Bytes {
    let length = u32::try_from(message.len()).expect("a message of less than 4 GiB");
    [
        &[u8::from(is_compressed)],
        &length.to_be_bytes()[..],
        message,
    ]
    .concat()
    .into()
}
