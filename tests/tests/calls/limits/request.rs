//! Graphs and configurations of a chosen size.

use hlorank_tests::prelude::*;

/// Returns two layouts of one node: the compiler's, and another.
pub(crate) fn layouts_of(node: u32) -> Configs {
    let changed = NodeLayout {
        node,
        tensors: vec![TensorLayout {
            minor_to_major: vec![0, 1],
        }],
    };
    let configs = vec![
        LayoutConfig::default(),
        LayoutConfig {
            nodes: vec![changed],
        },
    ];
    Configs::LayoutConfigs(LayoutConfigs { configs })
}

/// Returns a module of two dots with configurable layouts, nodes 3 and 4.
pub(crate) fn layout_graph() -> Graph {
    graph_of_module(two_dots())
}

/// Returns the same dots as one kernel.
pub(crate) fn kernel() -> Graph {
    kernel_graph(layout_graph())
}

/// Returns this number of tiles, of which 64 are distinct.
pub(crate) fn tiles(count: usize) -> Configs {
    wide_tiles(count, 2)
}

/// Returns such tiles with this number of dimensions.
pub(crate) fn wide_tiles(count: usize, dimensions: usize) -> Configs {
    Configs::PackedTileConfigs(repeated_tiles(count, dimensions))
}

/// Returns the arrays of this number of dots with these edges.
pub(crate) fn features(nodes: usize, edges: &[[u32; 2]]) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        edge_index: edges.as_flattened().to_vec(),
        ..GraphFeatures::default()
    }
}

/// Returns HLO text whose entry computation has these lines.
pub(crate) fn text(lines: &[String]) -> String {
    format!("HloModule m\n\nENTRY e {{\n  {}\n}}\n", lines.join("\n  "))
}
