//! Writes the corpus from `tests/data`: `cargo run -p hlorank-fuzz --example corpus`. Inputs that
//! fuzzing found are not touched.

use std::{fs, path::PathBuf};

use hlorank_fuzz::{
    corpus_folder,
    every_form::{readable_fusions, readable_layouts},
};
use hlorank_graph::{
    Configurations, FeatureFile, FeatureGraph, FusionBatch, FusionProgram, GraphFile, GraphSource,
    HloModule, LayoutBatchBuilder, LayoutEntry, Limits, MeasuredGraph, Measurements,
    NamedFeatureSet, NodeFeatureBatch, Pad, Task,
};
use hlorank_proto::{
    tpu_graphs::{
        ConfigProfile, HloModuleConfig, LayoutConfig, ModuleTuningData, TuningData,
        config_profile::Config,
        layout_config::{NodeLayoutConfig, TensorLayoutConfig},
    },
    v1::{
        self, ConfigBatch, Graph, GraphFeatures, ModelSelector, RankConfigsRequest,
        config_batch::Configs, graph::Source,
    },
    xla::{
        ExecutionProfile, HloComputationProto, HloInstructionProto, HloModuleProto, HloProto,
        LayoutProto, ShapeProto,
    },
};
use prost::{Message, bytes::Bytes};

/// Maximum number of runs of a graph.
const RUNS: usize = 6;

fn main() {
    modules();
    texts();
    batches();
    requests();
    manifests();
    arrays();
    for file in ["tile.pb", "layout.pb"] {
        write("tuning_data", file, &measured(file));
    }
    write(
        "tuning_data",
        "text.hlo.txt",
        &data("hlo/scalar_identity.cpu_after_opt.hlo.txt"),
    );
    files();
}

/// The shared test vectors that lead to different readers. The others differ in words alone.
const FILES: [&str; 10] = [
    "HLO text in gzip",
    "HloSnapshot",
    "Markdown",
    "SavedModel",
    "StableHLO",
    "UTF-16 with a mark",
    "a PyTorch file",
    "a log of XLA",
    "a module that is cut off, and a whole one",
    "computations alone",
];

/// Writes some files of the shared test vectors.
fn files() {
    let vectors: Vec<serde_json::Value> =
        serde_json::from_slice(&data("recognize.json")).expect("the test vectors");
    for vector in vectors {
        let [name, content] =
            ["name", "latin_1"].map(|field| vector[field].as_str().expect("text"));
        if !FILES.contains(&name) {
            continue;
        }
        let bytes: Vec<u8> = content
            .chars()
            .filter_map(|byte| u8::try_from(u32::from(byte)).ok())
            .collect();
        let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "_");
        write("recognize", &name, &bytes);
    }
}

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(path)
}

fn data(path: &str) -> Vec<u8> {
    let path = repository("tests/data").join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write(target: &str, name: &str, input: &[u8]) {
    let folder = corpus_folder(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), input).expect("an input is written");
}

/// Returns a module, decoded with the fields that hlorank reads.
fn module(name: &str) -> HloModuleProto {
    HloModuleProto::decode(&data(&format!("hlo/{name}.hlo_module.pb"))[..]).expect("a module")
}

fn modules() {
    write(
        "hlo_module",
        "scalar_identity.pb",
        &module("scalar_identity.cpu_after_opt").encode_to_vec(),
    );
    write(
        "hlo_module",
        "forms.pb",
        &data("hlo_text/forms.hlo_module.pb"),
    );
    let wrapped = HloProto {
        hlo_module: Some(module("scalar_identity.before_opt")),
    };
    write("hlo_module", "wrapped.pb", &wrapped.encode_to_vec());
    for name in [
        "mlp_train.before_opt",
        "control_flow_mix.before_opt",
        "fuzz_all_columns",
    ] {
        write(
            "hlo_module",
            &format!("{name}.pb"),
            &few_instructions(module(name)).encode_to_vec(),
        );
    }
}

/// Keeps the first instructions of the first computations, and the references between them.
fn few_instructions(mut module: HloModuleProto) -> HloModuleProto {
    module
        .computations
        .retain(|computation| !computation.instructions.is_empty());
    module.computations.truncate(4);
    for computation in &mut module.computations {
        computation.instructions.truncate(6);
        computation.root_id = computation.instructions.last().map_or(0, |last| last.id);
    }
    let computations: Vec<i64> = module
        .computations
        .iter()
        .map(|computation| computation.id)
        .collect();
    for computation in &mut module.computations {
        let ids: Vec<i64> = computation
            .instructions
            .iter()
            .map(|instruction| instruction.id)
            .collect();
        for instruction in &mut computation.instructions {
            instruction.operand_ids.retain(|id| ids.contains(id));
            instruction
                .called_computation_ids
                .retain(|id| computations.contains(id));
        }
    }
    module
}

fn texts() {
    write(
        "hlo_text",
        "scalar_identity.txt",
        &data("hlo/scalar_identity.before_opt.hlo.txt"),
    );
    for name in [
        "forms",
        "by_hand",
        "late_operands",
        "nested_loops.before_opt.compact",
    ] {
        write(
            "hlo_text",
            &format!("{name}.txt"),
            &data(&format!("hlo_text/{name}.hlo.txt")),
        );
    }
    for name in [
        "mlp_train.before_opt",
        "control_flow_mix.before_opt",
        "cnn_train.cpu_after_opt",
    ] {
        let text = String::from_utf8(data(&format!("hlo/{name}.hlo.txt"))).expect("text");
        write(
            "hlo_text",
            &format!("{name}.txt"),
            few_computations(&text).as_bytes(),
        );
    }
}

/// Returns the first computations of a text.
fn few_computations(text: &str) -> &str {
    const BYTES: usize = 2500;
    let ends = text
        .match_indices("\n}\n")
        .map(|(end, closing)| end + closing.len());
    &text[..ends
        .take_while(|end| *end < BYTES)
        .last()
        .unwrap_or(text.len())]
}

/// Returns a measured graph with a few of its runs.
fn measured(file: &str) -> Vec<u8> {
    match file {
        "tile.pb" => {
            let mut kernels =
                TuningData::decode(&data("measured/tile_kernels.pb")[..]).expect("kernels");
            kernels.modules.truncate(2);
            kernels.modules.iter_mut().for_each(few_runs);
            kernels.encode_to_vec()
        }
        "layout.pb" => small_layout().encode_to_vec(),
        _ => {
            let bytes = data("measured/layout_random_window_reversed.pb");
            let mut graph = ModuleTuningData::decode(&bytes[..]).expect("a graph");
            few_runs(&mut graph);
            graph.encode_to_vec()
        }
    }
}

/// Returns a graph of six nodes, three of them configurable, with some runs.
fn small_layout() -> ModuleTuningData {
    let layout = Some(LayoutProto {
        minor_to_major: vec![1, 0],
    });
    let shape = ShapeProto {
        element_type: 11,
        dimensions: vec![8, 8],
        layout,
        ..Default::default()
    };
    let instruction = |id, opcode: &str, operands: &[i64]| HloInstructionProto {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape: Some(shape.clone()),
        id,
        operand_ids: operands.to_vec(),
        parameter_number: if opcode == "parameter" { id - 1 } else { 0 },
        ..Default::default()
    };
    let instructions = vec![
        instruction(1, "parameter", &[]),
        instruction(2, "parameter", &[]),
        instruction(3, "dot", &[1, 2]),
        instruction(4, "reshape", &[3]),
        instruction(5, "convolution", &[4, 2]),
        instruction(6, "add", &[5, 3]),
    ];
    let computation = HloComputationProto {
        name: "entry".to_owned(),
        id: 7,
        root_id: 6,
        instructions,
    };
    let module = HloModuleProto {
        name: "small".to_owned(),
        computations: vec![computation],
        ..Default::default()
    };
    let runs = (0..).take(RUNS).map(run).collect();
    ModuleTuningData {
        module: Some(module),
        runs,
        config_index_to_node: vec![2, 3, 4],
        ..Default::default()
    }
}

fn run(number: i64) -> ConfigProfile {
    let tensor = |dims: &[i32]| TensorLayoutConfig {
        dims: dims.to_vec(),
    };
    let dims: &[i32] = if number % 2 == 0 { &[1, 0] } else { &[0, 1] };
    let node = |slot: i64| NodeLayoutConfig {
        tensors: if slot < number {
            vec![tensor(dims), tensor(&[]), tensor(&[-1, 0])]
        } else {
            vec![tensor(&[0, 1])]
        },
    };
    let layout_config = Some(LayoutConfig {
        nodes: (0..3).map(node).collect(),
    });
    ConfigProfile {
        config: Some(Config::ModuleConfig(HloModuleConfig {
            layout_config,
            ..HloModuleConfig::default()
        })),
        profile: Some(ExecutionProfile {
            compute_time_ns: 1000 + number,
        }),
        is_default: number == 1,
        ..Default::default()
    }
}

fn few_runs(graph: &mut ModuleTuningData) {
    graph.runs.truncate(RUNS);
}

fn read(file: &str) -> MeasuredGraph {
    let bytes = measured(file);
    let mut read = GraphFile::of(file.as_ref(), bytes, Task::Layout, &Limits::default())
        .expect("a measured graph");
    read.graphs.remove(0)
}

fn configurations(graph: &MeasuredGraph) -> &Configurations {
    &graph
        .measurements
        .as_ref()
        .expect("run times")
        .configurations
}

fn batches() {
    let batch = |configs| {
        ConfigBatch {
            configs: Some(configs),
        }
        .encode_to_vec()
    };
    let (layout, tile) = (read("layout.pb"), read("tile.pb"));
    let Configurations::Layout(layouts) = configurations(&layout) else {
        panic!("layouts")
    };
    let Configurations::Tile(tiles) = configurations(&tile) else {
        panic!("tiles")
    };
    let nodes: Vec<u32> = (0..).take(layouts.slots()).collect();
    write(
        "packed_configurations",
        "layout.pb",
        &batch(Configs::PackedLayoutConfigs(layouts.to_packed())),
    );
    write(
        "packed_configurations",
        "tile.pb",
        &batch(Configs::PackedTileConfigs(
            tiles.to_packed().expect("equal lists"),
        )),
    );
    let wide = |number| LayoutEntry::from_numbers([number, 0, 7], String::new).expect("an entry");
    let mut two_bytes = LayoutBatchBuilder::new(2, Limits::default());
    (0..260).for_each(|number| {
        two_bytes
            .push(&[wide(number), wide(0)])
            .expect("a configuration");
    });
    let two_bytes = two_bytes.build().expect("a batch");
    write(
        "packed_configurations",
        "two_bytes.pb",
        &batch(Configs::PackedLayoutConfigs(two_bytes.to_packed())),
    );
    write(
        "readable_configurations",
        "layout.pb",
        &batch(Configs::LayoutConfigs(readable_layouts(layouts, &nodes))),
    );
    write(
        "delta_configurations",
        "layout.pb",
        &batch(Configs::DeltaLayoutConfigs(layouts.to_delta())),
    );
    write(
        "delta_configurations",
        "two_bytes.pb",
        &batch(Configs::DeltaLayoutConfigs(two_bytes.to_delta())),
    );
    write(
        "readable_configurations",
        "tile.pb",
        &batch(Configs::TileConfigs(tiles.to_readable())),
    );
    let fused = vec![0b1010_0000, 0b101, 0b1010_0001, 0b101];
    let fusions = FusionBatch::new(2, 11, fused, &Limits::default()).expect("a batch");
    let nodes: Vec<u32> = (0..11).collect();
    write(
        "readable_configurations",
        "fusion.pb",
        &batch(Configs::FusionConfigs(readable_fusions(&fusions, &nodes))),
    );
    write(
        "packed_configurations",
        "fusion.pb",
        &batch(Configs::PackedFusionConfigs(fusions.to_packed())),
    );
    let columns = node_features();
    write(
        "packed_configurations",
        "node_features.pb",
        &batch(Configs::NodeFeatureConfigs(columns.to_dense())),
    );
    write(
        "packed_configurations",
        "node_feature_rows.pb",
        &batch(Configs::NodeFeatureConfigs(columns.to_table())),
    );
    write(
        "delta_configurations",
        "fusion.pb",
        &batch(Configs::DeltaFusionConfigs(fusions.to_delta())),
    );
}

fn requests() {
    let (layout, tile) = (read("layout.pb"), read("tile.pb"));
    let Configurations::Layout(layouts) = configurations(&layout) else {
        panic!("layouts")
    };
    let Configurations::Tile(tiles) = configurations(&tile) else {
        panic!("tiles")
    };
    let slots = layout.graph.configurable();
    let packed_tiles = || Configs::PackedTileConfigs(tiles.to_packed().expect("equal lists"));
    request(
        "layout_readable",
        module_of(&layout),
        slots,
        Configs::LayoutConfigs(readable_layouts(layouts, slots)),
    );
    request(
        "layout_packed",
        module_of(&layout),
        &[],
        Configs::PackedLayoutConfigs(layouts.to_packed()),
    );
    request(
        "layout_delta",
        module_of(&layout),
        slots,
        Configs::DeltaLayoutConfigs(layouts.to_delta()),
    );
    request(
        "tile_readable",
        module_of(&tile),
        &[],
        Configs::TileConfigs(tiles.to_readable()),
    );
    request("tile_packed", module_of(&tile), &[], packed_tiles());
    request(
        "hash",
        Source::GraphHash(vec![7; 32].into()),
        &[],
        packed_tiles(),
    );
    request(
        "features",
        Source::Features(features(&tile.graph)),
        &[],
        packed_tiles(),
    );
    text_request();
    measured_request();
    fusion_request();
    feature_set_request();
}

fn feature_set_request() {
    let graph = feature_graph();
    let message = v1::FeatureGraph {
        feature_set: graph.set().to_owned(),
        nodes: 2,
        node_features: graph
            .features()
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        edges: graph.edges().as_flattened().to_vec(),
        ..v1::FeatureGraph::default()
    };
    let columns = Configs::NodeFeatureConfigs(node_features().to_table());
    request("feature_set", Source::FeatureGraph(message), &[], columns);
}

/// Two configurations of two nodes with three columns.
fn node_features() -> NodeFeatureBatch {
    let values = [0.5, 1.0, 2.0, 0.5, 1.0, 2.0, 0.5, 1.0, 2.0, -4.0, 0.0, 1e9];
    NodeFeatureBatch::from_values([2, 3], &values, &Limits::default()).expect("a batch")
}

/// A graph of a feature set with two measured configurations.
fn measured_columns() -> MeasuredGraph {
    let measurements = Measurements {
        configurations: Configurations::FeatureSet(node_features()),
        run_times: vec![1000, 2000],
        normalizers: None,
        default: None,
        numbers: vec![0, 1],
        skipped: 0,
    };
    MeasuredGraph {
        name: "loops".to_owned(),
        source: GraphSource::Features,
        graph: hlorank_graph::Graph::of_features(feature_graph()),
        node_splits: vec![0, 2],
        nodes: Vec::new(),
        measurements: Some(measurements),
    }
}

/// Two nodes with one column.
fn feature_graph() -> FeatureGraph {
    let (set, edges) = ("loops".to_owned(), vec![[1, 0]]);
    FeatureGraph::new(set, 2, vec![1.5, 2.5], edges, &Limits::default()).expect("a graph")
}

fn measured_request() {
    let graph = read("measured.pb");
    let Configurations::Layout(layouts) = configurations(&graph) else {
        panic!("layouts")
    };
    request(
        "layout_measured",
        module_of(&graph),
        graph.graph.configurable(),
        Configs::DeltaLayoutConfigs(layouts.to_delta()),
    );
}

fn fusion_request() {
    let module = data("fusion/adam_small.hlo_module.pb");
    let read = HloModule::read(&module, &Limits::default()).expect("a module");
    let slots = FusionProgram::new(&read).expect("a program").slots().len();
    let fused = vec![0; 2 * slots.div_ceil(8)];
    let fusions = FusionBatch::new(2, slots, fused, &Limits::default()).expect("a batch");
    let configs = Configs::PackedFusionConfigs(fusions.to_packed());
    request(
        "fusion_packed",
        Source::HloModule(module.into()),
        &[],
        configs,
    );
}

fn module_of(graph: &MeasuredGraph) -> Source {
    match &graph.source {
        GraphSource::HloModule(bytes) => Source::HloModule(bytes.clone().into()),
        other => panic!("{other:?}"),
    }
}

fn text_request() {
    let text = String::from_utf8(data("hlo/mlp_train.before_opt.hlo.txt")).expect("text");
    let module = HloModule::read_text(&text, &Limits::default()).expect("a module");
    let slots = module.arrays.default_configurable();
    let mut layouts = LayoutBatchBuilder::new(slots.len(), Limits::default());
    for number in 0..3 {
        let entry = LayoutEntry::from_numbers([number, 12, 33], String::new).expect("an entry");
        layouts
            .push(&vec![entry; slots.len()])
            .expect("a configuration");
    }
    let layouts = layouts.build().expect("a batch");
    request(
        "text",
        Source::HloText(text),
        &[],
        Configs::PackedLayoutConfigs(layouts.to_packed()),
    );
}

fn request(name: &str, source: Source, slots: &[u32], configs: Configs) {
    let task = v1::Task::Unspecified.into();
    let graph = Graph {
        source: Some(source),
        task,
        configurable_nodes: slots.to_vec(),
    };
    let model = ModelSelector {
        name: "layout-xla-cpu".to_owned(),
        version: 3,
        ..ModelSelector::default()
    };
    let request = RankConfigsRequest {
        graph: Some(graph),
        batch: Some(ConfigBatch {
            configs: Some(configs),
        }),
        model: Some(model),
        top_k: 5,
        include_scores: true,
        allow_partial: false,
        adapt: None,
        explain_top: 2,
    };
    write("request", &format!("{name}.pb"), &request.encode_to_vec());
}

fn features(graph: &hlorank_graph::Graph) -> GraphFeatures {
    let features = graph.features(Pad::MinusOne).expect("known lengths");
    GraphFeatures {
        node_opcode: graph.opcodes().to_vec().into(),
        node_feat: features
            .into_iter()
            .flat_map(f32::to_le_bytes)
            .collect::<Bytes>(),
        edge_index: graph.edges().as_flattened().to_vec(),
        pad_value: -1,
    }
}

fn manifests() {
    for (name, path) in [
        (
            "segment.json",
            "tests/data/models/tile-xla-cpu/5/manifest.json",
        ),
        (
            "whole_graph.json",
            "tests/data/registry/layout-cross-configuration/1/manifest.json",
        ),
    ] {
        write(
            "manifest",
            name,
            &fs::read(repository(path)).expect("a manifest"),
        );
    }
    let (nodes, configs) = (vec!["depth".to_owned()], vec!["tile".to_owned()]);
    let digest = NamedFeatureSet::new("loops".to_owned(), nodes, configs)
        .expect("a set")
        .digest();
    let manifest = serde_json::json!({
        "schema": 1, "name": "loops-sum", "version": 1, "task": "feature-set", "kind": "graph", "architecture": "sum",
        "chunk_configs": 5, "batch_dependent": false, "feature_digest": digest.to_string(), "files": {},
        "feature_set": {"name": "loops", "node_features": ["depth"], "config_features": ["tile"]},
        "training_data_digest": "00".repeat(32), "licence": "Apache-2.0",
    });
    write(
        "manifest",
        "feature_set.json",
        manifest.to_string().as_bytes(),
    );
}

fn arrays() {
    write(
        "npz",
        "golden_tile.npz",
        &data("registry/tile-whole-graph/1/golden.npz"),
    );
    write(
        "npz",
        "features.npz",
        &data("hlo/scalar_identity.cpu_after_opt.features.npz"),
    );
    for (name, file) in [("layout.npz", "layout.pb"), ("tile.npz", "tile.pb")] {
        let folder = corpus_folder("npz");
        FeatureFile::write(&folder.join(name), &read(file), Pad::MinusOne).expect("an npz file");
    }
    FeatureFile::write(
        &corpus_folder("npz").join("feature_set.npz"),
        &measured_columns(),
        Pad::Zero,
    )
    .expect("an npz file");
}
