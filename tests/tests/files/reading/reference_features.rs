//! The featurizer yields the same values as `TpuGraphs`' own extractor for the same module.

use hlorank_graph::{FileError, Graph};
use hlorank_proto::tpu_graphs::ModuleTuningData;
use hlorank_tests::prelude::*;

#[test]
fn modules_have_the_features_of_the_reference() {
    assert_eq!(compare_all(&fixture(HLO_FIXTURES)), 9);
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
    let splits = module.node_splits.iter();
    let splits: Vec<i64> = splits.map(|&split| i64::try_from(split).unwrap()).collect();
    let configurable = module.arrays.default_configurable();
    let graph = module.into_graph(Task::Layout, configurable).unwrap();

    let mut reference = Arrays::open(&folder.join(format!("{name}.features.npz")));
    compare_features(name, &graph, &reference.values("node_feat"));
    let opcodes = reference.values::<u8>("node_opcode");
    assert_eq!(graph.opcodes(), opcodes, "{name}: opcodes");
    let edges = graph.edges().as_flattened().iter();
    let edges: Vec<i64> = edges.copied().map(i64::from).collect();
    let expected = reference.values::<i64>("edge_index");
    assert_eq!(edges, expected, "{name}: edges");
    let expected = reference.values::<i64>("node_splits");
    assert_eq!(splits, expected, "{name}: node splits");
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
    let mut file = read(&tuning.encode_to_vec()).unwrap();
    let measured = file.graphs.remove(0).measurements.unwrap();
    let expected: Vec<usize> = (0..1).chain(4..runs).collect();
    assert_eq!((measured.numbers, measured.skipped), (expected, 3));
}
