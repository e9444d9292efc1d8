//! The memory of a run of a whole-graph model is estimated for any graph, and returned after a large run; what reading a graph takes is
//! counted before. The tests measure the process, and one has processes of its own.

use std::{env, process};

use hlorank_graph::{ConfigInput, ConfigValues, Element, LOOP_FEATURES, ModuleExtent, Scope};
use hlorank_server::{
    compute::Worker,
    model::{
        EncoderInput, LoadedModel, Model, RunSizes, SegmentModel, WholeGraphInput, WholeGraphModel,
    },
    runtime::Runtime,
};
use hlorank_tests::{attackers::graphs::GRAPHS, prelude::*};

/// What a process needs beside the run: threads, tables of ONNX Runtime, and pages that are touched for the first time.
const BESIDE: usize = 24 << 20;

/// What the largest block of a segment model may take, whatever the graph.
const MAX_BLOCK: usize = 256 << 20;

/// The folders of the newest version of every whole-graph model that ships, and of those of the tests.
fn folders() -> Vec<PathBuf> {
    let registries = [
        all_models(),
        repository("models/papers"),
        fixture("registry"),
    ];
    let folders = |folder: PathBuf| {
        std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let mut models: Vec<PathBuf> = registries
        .into_iter()
        .flat_map(folders)
        .filter(|path| path.is_dir())
        .collect();
    models.sort();
    models
        .into_iter()
        .filter_map(|model| folders(model).max())
        .collect()
}

fn load(folder: &Path) -> Model {
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    Model::load(folder, &runtime, 1).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Sizes of a chain of nodes.
fn chain(model: &WholeGraphModel, nodes: usize, configs: usize) -> RunSizes {
    let slots = if model.facts.task.kind().scope == Scope::Nodes {
        nodes / 4
    } else {
        0
    };
    RunSizes {
        nodes,
        edges: nodes - 1,
        slots,
        configs,
    }
}

/// Sizes of a run that takes more than what a session keeps and what the process needs beside it.
fn large(model: &WholeGraphModel) -> RunSizes {
    const LARGE: usize = 128 << 20;
    (0..20)
        .map(|doubled| chain(model, 1_000 << doubled, 4))
        .find(|sizes| model.growth.bytes(*sizes) > LARGE)
        .unwrap()
}

/// Runs a model on inputs of some sizes, and returns by how much the memory of this process grew at most, and how much of it
/// remained.
fn run(model: &WholeGraphModel, sizes: RunSizes, columns: [usize; 2]) -> [usize; 2] {
    let kind = model.facts.task.kind();
    let of_nodes = |count: usize| (0..count).map(|node| i64::try_from(node).unwrap());
    let opcode = if kind.scope == Scope::EveryNode {
        vec![]
    } else {
        vec![1; sizes.nodes]
    };
    let graph = WholeGraphInput {
        nodes: sizes.nodes,
        opcode,
        features: vec![1.0; sizes.nodes * columns[0]],
        edges: of_nodes(sizes.nodes)
            .skip(1)
            .chain(of_nodes(sizes.edges))
            .collect(),
        configurable: of_nodes(sizes.slots).collect(),
    };
    let shape = match kind.scope {
        Scope::EveryNode => vec![sizes.configs, sizes.nodes, columns[1]],
        Scope::Nodes => vec![sizes.configs, sizes.slots, columns[1]],
        Scope::Kernel | Scope::Program => vec![sizes.configs, columns[1]],
    };
    let config = ones(kind.element, shape);
    let interrupt = model.interrupt(model.growth.bytes(sizes)).unwrap();
    growth(|| {
        model.score(Worker(0), &graph, &config, &interrupt).unwrap();
    })
}

/// Returns configurations of this shape.
fn ones(element: Element, shape: Vec<usize>) -> ConfigInput {
    let count = shape.iter().product();
    let values = match element {
        Element::Float32 => ConfigValues::Float32(vec![1.0; count]),
        Element::Int64 => ConfigValues::Int64(vec![1; count]),
    };
    ConfigInput { shape, values }
}

/// Returns by how much the memory of this process grows at most, and how much of it remains.
fn growth(run: impl FnOnce()) -> [usize; 2] {
    let before = resident_bytes(process::id());
    reset_peak(process::id());
    run();
    [peak_bytes(process::id()), resident_bytes(process::id())]
        .map(|bytes| bytes.saturating_sub(before))
}

/// Runs the encoder of a segment model on its largest block, and returns by how much the memory of this process grew at most.
fn run_largest_block(model: &SegmentModel) -> usize {
    const ROWS: usize = 4;
    let nodes = *model.settings.buckets.last().unwrap();
    let kind = model.facts.task.kind();
    let loops = if model.facts.has_loops {
        LOOP_FEATURES
    } else {
        0
    };
    let shape = match kind.scope {
        Scope::Nodes => Some(vec![ROWS, nodes, kind.width]),
        Scope::Kernel => Some(vec![ROWS, kind.width + loops]),
        Scope::Program | Scope::EveryNode => None,
    };
    let input = EncoderInput {
        rows: ROWS,
        segments: ROWS,
        nodes,
        opcode: vec![1; ROWS * nodes],
        features: vec![1.0; ROWS * nodes * FEATURES],
        operands: vec![0.0; ROWS * nodes * nodes],
        mask: vec![1.0; ROWS * nodes],
        segment: (0..).take(ROWS).collect(),
        config: shape.map(|shape| ones(kind.element, shape)),
    };
    let interrupt = model.interrupt().unwrap();
    let [most, _] = growth(|| {
        model.encode(Worker(0), &input, &interrupt).unwrap();
    });
    most
}

/// Numbers of columns of nodes and of configurations.
fn columns(model: &Model) -> [usize; 2] {
    let (features, kind) = (&model.manifest().features, model.manifest().task.kind());
    let named = features.named().map(|set| set.config_features().len());
    [features.node_features(), named.unwrap_or(kind.width)]
}

/// Reads a graph as a server does, and returns whether it could be read.
fn read(source: &Source, task: Task, limits: &Limits) -> bool {
    let module = match source {
        Source::HloText(text) => HloModule::read_text(text, limits),
        Source::HloModule(bytes) => HloModule::read(bytes, limits),
        _ => panic!("a module"),
    };
    let described = module.and_then(|module| {
        let mut configurable = module.arrays.default_configurable();
        if task != Task::Layout {
            configurable.clear();
        }
        module.into_described_graph(task, configurable)
    });
    described.is_ok_and(|(graph, _)| SegmentedGraph::new(&graph).summary.nodes > 0)
}

/// Reads one of the graphs, and asserts that this takes at most what is counted before.
fn assert_counted(name: &str, graph: Graph) {
    let limits = Limits::default();
    let task = Task::from_wire(graph.task()).unwrap();
    let source = graph.source.unwrap();
    let extent = match &source {
        Source::HloText(text) => ModuleExtent::of_text(text),
        Source::HloModule(bytes) => ModuleExtent::of_message(bytes),
        // Arrays and their messages have no other size once they are read.
        _ => return,
    };
    let counted = extent.bytes(&limits);
    let mut is_read = false;
    let [took, _] = growth(|| is_read = read(&source, task, &extent.limits(&limits)));
    println!(
        "{name}: read: {is_read}, {} KiB of {} counted, {:.2}",
        took >> 10,
        counted >> 10,
        took as f64 / counted as f64
    );
    assert!(
        took <= counted + BESIDE,
        "{name}: {took} bytes, {counted} counted"
    );
}

#[test]
fn reading_the_largest_graphs_takes_at_most_what_is_counted_before() {
    const NODES: usize = 90_000;
    const NUMBER: &str = "TEST_GRAPH";
    if let Ok(number) = env::var(NUMBER) {
        let (name, graph) = GRAPHS[number.parse::<usize>().unwrap()];
        return assert_counted(name, graph(NODES, 1));
    }
    // Each in a process of its own, since freed memory of another one would hide what it takes.
    for number in 0..GRAPHS.len() {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["reading", "--nocapture"]);
        let status = again.env(NUMBER, number.to_string()).status().unwrap();
        assert!(status.success(), "graph {number}");
    }
}

#[test]
fn a_run_takes_at_most_what_was_estimated_for_every_model_and_returns_it() {
    let mut checked = 0;
    for folder in folders() {
        let loaded = load(&folder);
        let model = match &loaded.loaded {
            LoadedModel::WholeGraph(model) => model,
            LoadedModel::Segment(model) => {
                let most = run_largest_block(model);
                println!("{}: {most} bytes for the largest block", model.facts.name);
                assert!(most <= MAX_BLOCK + BESIDE, "{}: {most}", model.facts.name);
                continue;
            }
            LoadedModel::Absent => panic!("a folder has a model"),
        };
        let columns = columns(&loaded);
        for sizes in [chain(model, 500, 16), large(model)] {
            let RunSizes { nodes, configs, .. } = sizes;
            let estimate = model.growth.bytes(sizes);
            let [most, kept] = run(model, sizes, columns);
            let name = &model.facts.name;
            println!(
                "{name}: {nodes} nodes, {configs} configurations: {most} bytes, estimated {estimate}, kept {kept}"
            );
            assert!(
                most <= estimate + BESIDE,
                "{name}: a run over {sizes:?} took {most} bytes, estimated {estimate}"
            );
            assert!(
                estimate <= 6 * most + BESIDE,
                "{name}: {estimate} bytes were estimated for {sizes:?}, it took {most}"
            );
            assert!(
                kept <= (64 << 20) + BESIDE,
                "{name}: {kept} bytes remain of a run over {sizes:?}"
            );
            checked += 1;
        }
        let nodes = Limits::default().nodes;
        let large = model.growth.bytes(chain(model, nodes, 4));
        println!("{}: {large} bytes for {nodes} nodes", model.facts.name);
        assert!(
            large > nodes * size_of::<f32>(),
            "{}: {large}",
            model.facts.name
        );
    }
    assert!(checked > 10, "{checked}");
}
