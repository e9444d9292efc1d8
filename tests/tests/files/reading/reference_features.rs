//! The featurizer yields the same values as `TpuGraphs`' own extractor for the same module.

use hlorank_graph::{FileError, Graph};
use hlorank_proto::tpu_graphs::ModuleTuningData;
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

fn read(bytes: &[u8]) -> Result<GraphFile, FileError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    GraphFile::read(file.path(), Task::Layout, &Limits::default())
}

#[test]
fn a_cut_file_of_kernels_is_refused_with_the_kernel() {
    let whole = fs::read(fixture("measured/tile_kernels.pb")).unwrap();
    assert_eq!(read(&whole).unwrap().graphs.len(), 5);
    let error = read(&whole[..whole.len() - 10]).unwrap_err().to_string();
    says!(error, "module 4", "not a readable protobuf");
}

#[test]
fn runs_keep_their_numbers_where_others_failed() {
    let bytes = fs::read(fixture("measured/layout_random_window_nchw_train.pb")).unwrap();
    let mut tuning = ModuleTuningData::decode(&bytes[..]).unwrap();
    for run in &mut tuning.runs[1..4] {
        run.error = true;
    }
    let runs = tuning.runs.len();
    // The schema here has only the fields of a module that are read, and those are preserved.
    let measured = read(&tuning.encode_to_vec())
        .unwrap()
        .graphs
        .remove(0)
        .measurements
        .unwrap();
    let expected: Vec<usize> = (0..1).chain(4..runs).collect();
    assert_eq!((measured.numbers, measured.skipped), (expected, 3));
}
