//! Requests of a size.

use hlorank_proto::v1::{
    Graph, GraphFeatures, LayoutConfig, LayoutConfigs, NodeLayout, PackedTileConfigs, RankConfigsRequest,
    Task, TensorLayout, graph::Source, rank_configs_request::Configs,
};
use hlorank_tests::module::two_dots;

/// A graph that came as this.
pub(crate) fn graph(source: Source) -> Graph {
    Graph { source: Some(source), ..Graph::default() }
}

/// Ranks configurations of a graph.
pub(crate) fn request(graph: Graph, configs: Configs) -> RankConfigsRequest {
    RankConfigsRequest { graph: Some(graph), configs: Some(configs), ..RankConfigsRequest::default() }
}

/// Two layouts of one node: the compiler's, and another.
pub(crate) fn layouts_of(node: u32) -> Configs {
    let changed = NodeLayout { node, tensors: vec![TensorLayout { minor_to_major: vec![0, 1] }] };
    let configs = vec![LayoutConfig::default(), LayoutConfig { nodes: vec![changed] }];
    Configs::LayoutConfigs(LayoutConfigs { configs })
}

/// Two dots whose layouts are tuned, nodes 3 and 4.
pub(crate) fn layout_graph() -> Graph {
    graph(Source::HloModule(two_dots().into()))
}

/// The same dots as one kernel.
pub(crate) fn kernel() -> Graph {
    Graph { task: Task::Tile.into(), ..layout_graph() }
}

/// So many tiles, 64 different ones over and over.
pub(crate) fn tiles(count: usize) -> Configs {
    wide_tiles(count, 2)
}

/// So many tiles of so many dimensions.
pub(crate) fn wide_tiles(count: usize, dimensions: usize) -> Configs {
    let bound = |config: usize| i32::try_from(config % 64 + 1).unwrap();
    let bounds = (0..count).flat_map(|config| std::iter::repeat_n(bound(config), dimensions));
    Configs::PackedTileConfigs(PackedTileConfigs {
        config_count: u32::try_from(count).unwrap(),
        output_bound_count: u32::try_from(dimensions).unwrap(),
        bounds: bounds.flat_map(i32::to_le_bytes).collect::<Vec<u8>>().into(),
        ..PackedTileConfigs::default()
    })
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
