//! The featurizer yields the same values as `TpuGraphs`' own extractor for the same module.

use hlorank_graph::Graph;
use hlorank_tests::prelude::*;

#[test]
fn our_modules_give_the_reference_features() {
    assert_eq!(compare_all(&fixture(HLO_FIXTURES)), 9);
}

#[test]
fn the_large_modules_give_the_reference_features() {
    if let Some(folder) = shared("data/hlo") {
        assert!(compare_all(&folder) >= 19);
    }
}

/// Compares every module of a folder with its reference, and returns the number of modules.
fn compare_all(folder: &Path) -> usize {
    let names = modules(folder);
    for name in &names {
        compare(folder, name);
    }
    names.len()
}

fn compare(folder: &Path, name: &str) {
    let bytes = fs::read(folder.join(format!("{name}.hlo_module.pb"))).unwrap();
    let module = HloModule::read(&bytes, &Limits::default()).unwrap();
    let splits: Vec<i64> = module
        .node_splits
        .iter()
        .map(|&split| i64::try_from(split).unwrap())
        .collect();
    let configurable = module.arrays.default_configurable();
    let graph = module.into_graph(Task::Layout, configurable).unwrap();

    let mut reference = Arrays::open(&folder.join(format!("{name}.features.npz")));
    compare_features(name, &graph, &reference.values("node_feat"));
    assert_eq!(
        graph.opcodes(),
        reference.values::<u8>("node_opcode"),
        "{name}: opcodes"
    );
    let edges: Vec<i64> = graph
        .edges()
        .as_flattened()
        .iter()
        .copied()
        .map(i64::from)
        .collect();
    assert_eq!(
        edges,
        reference.values::<i64>("edge_index"),
        "{name}: edges"
    );
    assert_eq!(
        splits,
        reference.values::<i64>("node_splits"),
        "{name}: node splits"
    );
}

/// Compares bits, and reports only the first difference because arrays have up to a million numbers.
fn compare_features(name: &str, graph: &Graph, reference: &[f32]) {
    let features = graph.features(Pad::Zero).unwrap();
    assert_eq!(
        features.len(),
        reference.len(),
        "{name}: number of features"
    );
    let differs = features
        .iter()
        .zip(reference)
        .position(|(ours, theirs)| ours.to_bits() != theirs.to_bits());
    if let Some(at) = differs {
        let (node, column) = (at / FEATURES, at % FEATURES);
        panic!(
            "{name}: node {node}, column {column} is {}, the reference has {}",
            features[at], reference[at]
        );
    }
}
