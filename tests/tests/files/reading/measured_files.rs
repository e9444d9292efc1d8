//! Files of measured configurations are read completely, or rejected with the place of the error.

use hlorank_graph::FileError;
use hlorank_proto::tpu_graphs::ModuleTuningData;
use hlorank_tests::prelude::*;

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
