//! The time from a serialized module to its segments, and whether it grows linearly with the nodes.

use hlorank_tests::prelude::*;

const RUNS: usize = 21;

/// The module that is repeated, with 268 nodes.
const REPEATED: &str = "hlo/cnn_train.cpu_after_opt.hlo_module.pb";
/// Number of copies that have about as many nodes as the large module.
const LARGE_COPIES: i64 = 120;

pub(crate) fn of_modules() {
    let name = "transformer96_train.before_opt";
    let large = shared(&format!("data/hlo/{name}.hlo_module.pb"));
    let large = large.map_or_else(
        || copies(LARGE_COPIES),
        |path| fs::read(path).expect("a module"),
    );
    let (nodes, times) = measured(&large);
    let how =
        format!("read, featurize, hash, prune and cut a module of {nodes} nodes on one thread");
    Figure::of_median("read_graph", &times, 100.0, &how).write();
    // The fastest run, because a busy machine slows a large module down more than a small one.
    let [small, large] = [8, 512].map(|count| {
        let (nodes, times) = measured(&copies(count));
        (nodes, times.fastest() / nodes as f64)
    });
    Figure {
        name: "read_graph_linearity".to_owned(),
        value: large.1 / small.1,
        unit: "x",
        target: Target::AtMost(2.0),
        how: format!(
            "time per node at {} nodes over that at {}: {:.0} and {:.0} ns; fastest of {RUNS}",
            large.0,
            small.0,
            large.1 * 1e6,
            small.1 * 1e6
        ),
    }
    .write();
}

/// Returns the nodes of a module, and the times of runs.
fn measured(bytes: &[u8]) -> (usize, Times) {
    let limits = Limits {
        nodes: 1 << 20,
        edges: 1 << 22,
        ..Limits::default()
    };
    let mut nodes = 0;
    let times = Times::of_runs(RUNS, || {
        let module = HloModule::read(bytes, &limits).expect("the module is sound");
        let configurable = module.arrays.default_configurable();
        let graph = module
            .into_graph(Task::Layout, configurable)
            .expect("the module is sound");
        nodes = graph.len();
        drop(std::hint::black_box(SegmentedGraph::new(&graph)));
    });
    (nodes, times)
}

/// Returns a module whose computations are repeated, each copy with its own ids.
fn copies(count: i64) -> Vec<u8> {
    /// Larger than any id `computation << 32 | instruction`.
    const STRIDE: i64 = 1 << 44;
    let bytes = fs::read(fixture(REPEATED)).expect("the fixture is part of the repository");
    let module = HloModuleProto::decode(&bytes[..]).expect("the fixture is sound");
    let shifted = |computation: &HloComputationProto, shift: i64| {
        let mut computation = computation.clone();
        computation.id += shift;
        computation.root_id += shift;
        for instruction in &mut computation.instructions {
            instruction.id += shift;
            let ids = instruction
                .operand_ids
                .iter_mut()
                .chain(&mut instruction.called_computation_ids);
            ids.for_each(|id| *id += shift);
        }
        computation
    };
    let computations = (0..count).flat_map(|copy| {
        module
            .computations
            .iter()
            .map(move |one| shifted(one, copy * STRIDE))
    });
    HloModuleProto {
        computations: computations.collect(),
        ..module.clone()
    }
    .encode_to_vec()
}
