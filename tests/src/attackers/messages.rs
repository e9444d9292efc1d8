//! Requests that are small on the wire or in memory, but claim a lot of work.

use hlorank_graph::{Configurations, FEATURES, Limits, NodeFeatureBatch};
use hlorank_proto::{
    v1::{
        Adapt, ConfigBatch, DeltaFusionConfigs, FeatureGraph, Graph, GraphFeatures, LayoutConfig,
        LayoutConfigs, PackedTileConfigs, RankConfigsRequest, Task, config_batch::Configs,
        graph::Source,
    },
    xla::{HloInstructionProto, ShapeProto},
};
use prost::{Message as _, bytes::Bytes};

use crate::{
    graph_of, graph_of_module, kernel_graph,
    module::{operation, single, two_dots},
    rank_request, repeated_tiles, repository,
};

/// What a batch in the readable form consists of. A decoder that builds every element takes many times the bytes of the
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Tiles without bounds, 2 bytes each.
    EmptyTiles,
    /// Layouts without nodes, 2 bytes each.
    EmptyLayouts,
    /// One layout of nodes without tensors, 2 bytes each.
    EmptyNodes,
    /// One node of tensors without dimensions, 2 bytes each.
    EmptyTensors,
    /// One tile of bounds of 1 byte each.
    SmallBounds,
    /// Batches, of which the last counts, 2 bytes each.
    Batches,
    /// Entries of the table of a layout, 2 bytes each.
    EmptyTables,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 7] = [
        Self::EmptyTiles,
        Self::EmptyLayouts,
        Self::EmptyNodes,
        Self::EmptyTensors,
        Self::SmallBounds,
        Self::Batches,
        Self::EmptyTables,
    ];
}

/// Returns a request about one configuration of a chain of this many nodes, of the feature set of Halide's model.
///
/// # Panics
/// If the repository lacks that model.
#[must_use]
pub fn chain_of_halide(nodes: usize) -> Vec<u8> {
    let manifest = repository("models/registry/halide-adams2019/1/manifest.json");
    let manifest = std::fs::read(manifest).expect("the manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("a manifest");
    let set = &manifest["feature_set"];
    let ones = |columns: &str| {
        let columns = set[columns].as_array().expect("columns").len();
        1.0_f32.to_le_bytes().repeat(nodes * columns)
    };
    let ends = (1..nodes).flat_map(|node| [node, node - 1]);
    let graph = graph_of(Source::FeatureGraph(FeatureGraph {
        feature_set: set["name"].as_str().expect("a name").to_owned(),
        nodes: u32::try_from(nodes).expect("a small number"),
        node_features: ones("node_features").into(),
        edges: ends
            .map(|node| u32::try_from(node).expect("a small number"))
            .collect(),
        ..FeatureGraph::default()
    }));
    let columns = set["config_features"].as_array().expect("columns").len();
    let batch = [nodes, columns];
    let values = vec![1.0; nodes * columns];
    let batch =
        NodeFeatureBatch::from_values(batch, &values, &Limits::default()).expect("a configuration");
    rank_request(graph, Configurations::FeatureSet(batch).to_smallest_form()).encode_to_vec()
}

/// Field numbers of `configuration.proto` and `cost_model_service.proto`.
const BATCH: u8 = 2;
const LAYOUT_CONFIGS: u8 = 1;
const DELTA_LAYOUT_CONFIGS: u8 = 3;
const TILE_CONFIGS: u8 = 4;
/// The first field, which is repeated in every message of the readable forms but a node's.
const FIRST: u8 = 1;
const TENSORS: u8 = 2;

/// Protobuf's wire type of messages, texts and packed numbers.
const LENGTH_DELIMITED: u8 = 2;

/// Returns a serialized request with a batch of about this size.
#[must_use]
pub fn readable_batch(shape: Shape, bytes: usize) -> Vec<u8> {
    let empty = |field: u8| [field << 3 | LENGTH_DELIMITED, 0].repeat(bytes / 2);
    let batch = |form: u8, levels: &[u8], elements: Vec<u8>| {
        let inner = levels
            .iter()
            .rev()
            .fold(elements, |inside, &field| nested(field, &inside));
        nested(BATCH, &nested(form, &inner))
    };
    let batch = match shape {
        Shape::EmptyTiles => batch(TILE_CONFIGS, &[], empty(FIRST)),
        Shape::EmptyLayouts => batch(LAYOUT_CONFIGS, &[], empty(FIRST)),
        Shape::EmptyNodes => batch(LAYOUT_CONFIGS, &[FIRST], empty(FIRST)),
        Shape::EmptyTensors => batch(LAYOUT_CONFIGS, &[FIRST, FIRST], empty(TENSORS)),
        Shape::SmallBounds => batch(TILE_CONFIGS, &[FIRST, FIRST], vec![1; bytes]),
        Shape::Batches => empty(BATCH),
        Shape::EmptyTables => batch(DELTA_LAYOUT_CONFIGS, &[], empty(FIRST)),
    };
    [graph(), batch].concat()
}

/// Returns the beginning of a request: a small graph, whose task the configurations decide.
fn graph() -> Vec<u8> {
    let graph = Some(graph_of_module(two_dots()));
    RankConfigsRequest {
        graph,
        ..RankConfigsRequest::default()
    }
    .encode_to_vec()
}

/// Returns serialized requests about graphs with numbers that are valid but overflow when they are multiplied: finite
/// features and dimensions, for both tasks.
#[must_use]
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
#[must_use]
pub fn fused_chain(length: usize, users: usize, configs: u32) -> Vec<u8> {
    let program = Graph {
        source: Some(Source::HloText(chain_text(length, users))),
        task: Task::Fusion.into(),
        ..Graph::default()
    };
    // The nodes of the chain that a user reads in its kernel are slots, and stand in the order of the text.
    let mut base = vec![0; length.div_ceil(8)];
    (0..length).for_each(|slot| base[slot / 8] |= 1 << (slot % 8));
    let fusions = DeltaFusionConfigs {
        base: base.into(),
        change_counts: vec![1; configs as usize],
        change_slots: (0..configs).collect(),
    };
    rank_request(program, Configs::DeltaFusionConfigs(fusions)).encode_to_vec()
}

/// Returns a request about a graph of this many reshapes in a chain, each with a layout to choose. Another number is another
/// graph.
#[must_use]
pub fn long_text(nodes: usize, number: usize) -> Vec<u8> {
    let start = format!("HloModule m{number}\n\nENTRY main {{\n  c0 = f32[8] parameter(0)\n");
    let chain = (1..nodes).map(|node| {
        format!(
            "  c{node} = f32[{}] reshape(c{})\n",
            dimensions(node),
            node - 1
        )
    });
    let text = [start]
        .into_iter()
        .chain(chain)
        .chain(["}\n".to_owned()])
        .collect();
    let graph = Graph {
        task: Task::Layout.into(),
        ..graph_of(Source::HloText(text))
    };
    rank_request(
        graph,
        Configs::LayoutConfigs(LayoutConfigs {
            configs: vec![LayoutConfig::default()],
        }),
    )
    .encode_to_vec()
}

fn dimensions(node: usize) -> &'static str {
    if node.is_multiple_of(2) { "8" } else { "2,4" }
}

/// Returns a request about this many tiles of a small kernel, all of them different.
#[must_use]
pub fn many_tiles(count: usize) -> RankConfigsRequest {
    rank_request(
        kernel_graph(graph_of_module(two_dots())),
        Configs::PackedTileConfigs(different_tiles(count)),
    )
}

/// Returns a request that learns from this many measured tiles.
#[must_use]
pub fn many_measurements(count: usize) -> Vec<u8> {
    let batch = ConfigBatch {
        configs: Some(Configs::PackedTileConfigs(different_tiles(count))),
    };
    let seconds = (0..count)
        .map(|config| 1e-3 + 1e-6 * (config % 97) as f64)
        .collect();
    let adapt = Adapt {
        target: "a board".to_owned(),
        batch: Some(batch),
        seconds,
        ..Adapt::default()
    };
    RankConfigsRequest {
        adapt: Some(adapt),
        ..many_tiles(count)
    }
    .encode_to_vec()
}

fn different_tiles(count: usize) -> PackedTileConfigs {
    let bounds = (0..count).flat_map(|config| [config / 1000 + 1, config % 1000 + 1]);
    let bounds = bounds.map(|bound| i32::try_from(bound).expect("a small number"));
    PackedTileConfigs {
        config_count: u32::try_from(count).expect("a small number"),
        output_bound_count: 2,
        bounds: bounds
            .flat_map(i32::to_le_bytes)
            .collect::<Vec<u8>>()
            .into(),
        ..PackedTileConfigs::default()
    }
}

fn chain_text(length: usize, users: usize) -> String {
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

/// Returns a field that holds these bytes.
fn nested(field: u8, inside: &[u8]) -> Vec<u8> {
    let mut outside = vec![field << 3 | LENGTH_DELIMITED];
    prost::encode_length_delimiter(inside.len(), &mut outside).expect("a vector grows");
    outside.extend(inside);
    outside
}

/// Returns a message as it is in the body of a call.
///
/// # Panics
/// If the message has 4 GiB.
#[must_use]
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
