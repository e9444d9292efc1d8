//! Requests of a size.

use hlorank_proto::v1::{
    Graph, GraphFeatures, LayoutConfig, LayoutConfigs, NodeLayout, TensorLayout, config_batch::Configs,
};
use hlorank_tests::{graph_of_module, kernel_graph, module::two_dots, repeated_tiles};

/// Two layouts of one node: the compiler's, and another.
pub(crate) fn layouts_of(node: u32) -> Configs {
    let changed = NodeLayout { node, tensors: vec![TensorLayout { minor_to_major: vec![0, 1] }] };
    let configs = vec![LayoutConfig::default(), LayoutConfig { nodes: vec![changed] }];
    Configs::LayoutConfigs(LayoutConfigs { configs })
}

/// Two dots whose layouts are tuned, nodes 3 and 4.
pub(crate) fn layout_graph() -> Graph {
    graph_of_module(two_dots())
}

/// The same dots as one kernel.
pub(crate) fn kernel() -> Graph {
    kernel_graph(layout_graph())
}

/// So many tiles, 64 different ones over and over.
pub(crate) fn tiles(count: usize) -> Configs {
    wide_tiles(count, 2)
}

/// So many tiles of so many dimensions.
pub(crate) fn wide_tiles(count: usize, dimensions: usize) -> Configs {
    Configs::PackedTileConfigs(repeated_tiles(count, dimensions))
}

/// A chain of dots, as arrays: so many nodes, and these edges.
pub(crate) fn features(nodes: usize, edges: &[[u32; 2]]) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        edge_index: edges.as_flattened().to_vec(),
        ..GraphFeatures::default()
    }
}

/// HLO text whose entry computation has these lines.
pub(crate) fn text(lines: &[String]) -> String {
    format!("HloModule m\n\nENTRY e {{\n  {}\n}}\n", lines.join("\n  "))
}
