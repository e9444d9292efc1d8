//! Requests that are valid except for one thing.

use hlorank_tests::prelude::*;

pub(crate) fn features(nodes: usize) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        ..Default::default()
    }
}

pub(crate) fn graph_of_features(features: GraphFeatures) -> Graph {
    graph_of(Source::Features(features))
}

pub(crate) fn node(node: u32, minor_to_major: &[i32]) -> NodeLayout {
    NodeLayout {
        node,
        tensors: vec![TensorLayout {
            minor_to_major: minor_to_major.to_vec(),
        }],
    }
}

pub(crate) fn readable(nodes: Vec<NodeLayout>) -> Configs {
    Configs::LayoutConfigs(LayoutConfigs {
        configs: vec![LayoutConfig { nodes }],
    })
}

pub(crate) fn tables() -> Vec<LayoutTable> {
    vec![
        LayoutTable {
            entries: vec![0, 0, 0, 9, 0, 0]
        };
        2
    ]
}

pub(crate) fn packed(config_count: u32, tables: Vec<LayoutTable>, indices: &[u8]) -> Configs {
    let indices = indices.to_vec().into();
    Configs::PackedLayoutConfigs(PackedLayoutConfigs {
        config_count,
        tables,
        indices,
    })
}

pub(crate) fn delta(slots: Vec<u32>, entries: Vec<u32>) -> Configs {
    Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
        tables: tables(),
        base: vec![0, 0],
        change_counts: vec![u32::try_from(slots.len()).unwrap()],
        change_slots: slots,
        change_entries: entries,
    })
}

pub(crate) fn tiles() -> Configs {
    Configs::TileConfigs(TileConfigs {
        configs: vec![TileConfig {
            output_bounds: vec![8],
            ..Default::default()
        }],
    })
}

/// Returns a valid request.
pub(crate) fn sound() -> RankConfigsRequest {
    rank_request(
        graph_of_module(two_dots()),
        readable(vec![node(3, &[0, 1])]),
    )
}

pub(crate) fn with_graph(graph: Graph) -> RankConfigsRequest {
    sound().with_graph(graph)
}

pub(crate) fn with_module(module: Vec<u8>) -> RankConfigsRequest {
    with_graph(graph_of_module(module))
}

pub(crate) fn with_configs(configs: Configs) -> RankConfigsRequest {
    sound().with_configs(configs)
}

pub(crate) fn with_model(name: &str, version: u64) -> RankConfigsRequest {
    let model = ModelSelector {
        name: name.to_owned(),
        version,
        ..ModelSelector::default()
    };
    RankConfigsRequest {
        model: Some(model),
        ..sound()
    }
}
