use std::path::Path;

use super::{
    array::Arrays,
    section::{FEATURE_SET, MODULE, Section},
};
use crate::{
    Configurations, FileError, FileKind, Graph, Limits, MeasuredGraph, Task, recognize::name_of_zip,
};

/// One golden case of an artifact: a graph, configurations, and the scores that the model must return.
#[derive(Debug)]
pub struct GoldenCase {
    /// The graph.
    pub graph: Graph,
    /// Its configurations.
    pub configurations: Configurations,
    /// `[configs]` expected scores.
    pub scores: Vec<f32>,
}

/// Maximum number of bytes of all arrays of `golden.npz`.
const MAX_GOLDEN_BYTES: u64 = 64 << 20;

/// Names of arrays, one of which every graph has.
const GRAPH_ARRAYS: [&str; 6] = [
    "node_opcode",
    "node_feat",
    "edge_index",
    FEATURE_SET,
    "node_features",
    MODULE,
];

/// Name of the array of exported measurements: a serialized `ExportedMeasurements`.
pub(super) const EXPORTED: &str = "hlorank_measurements";

/// Maximum number of bytes of all arrays of a file with exported measurements.
const MAX_EXPORTED_BYTES: u64 = 4 << 30;

/// Maximum number of bytes of that array.
const MAX_EXPORTED: usize = 1 << 30;

/// Reads the bytes of [`FeatureFile::write_exported`](super::FeatureFile::write_exported); nothing if the file has none. Errors
/// name the `path`.
pub fn read_exported(path: &Path, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, FileError> {
    let mut arrays = Arrays::of(path, bytes, MAX_EXPORTED_BYTES)?;
    if !arrays.has(EXPORTED) {
        return Ok(None);
    }
    arrays.integers(EXPORTED, MAX_EXPORTED).map(Some)
}

/// Reads the bytes of `golden.npz` of an artifact, whose arrays may have 64 MiB. Each case `0/`, `1/` … holds the arrays of
/// spec §7 and `score`. A case of fusions holds `hlo_module` in place of the graph, and the bits of each configuration as the
/// bytes `fused`. A case of a feature set holds the arrays of its measured files. Errors name the `path`.
pub fn read_golden_cases(
    path: &Path,
    bytes: Vec<u8>,
    limits: &Limits,
) -> Result<Vec<GoldenCase>, FileError> {
    let mut arrays = Arrays::of(path, bytes, MAX_GOLDEN_BYTES)?;
    let mut cases = Vec::new();
    loop {
        arrays.prefix = format!("{}/", cases.len());
        // One array of each kind of graph.
        if !["node_feat", MODULE, FEATURE_SET]
            .iter()
            .any(|array| arrays.has(array))
        {
            return Ok(cases);
        }
        let mut case = Section::new(&mut arrays, limits);
        let task = case.task().ok_or_else(|| case.no_configurations())?;
        let graph = case.graph(task)?;
        let configurations = case.configurations(&graph)?;
        let scores = case.scores(configurations.len())?;
        cases.push(GoldenCase {
            graph,
            configurations,
            scores,
        });
    }
}

/// Reads an npz file of `TpuGraphs` or of a feature set. `bare_task` is the task of a file without configurations.
pub(crate) fn read_npz(
    path: &Path,
    bytes: Vec<u8>,
    bare_task: Task,
    limits: &Limits,
) -> Result<(FileKind, MeasuredGraph), FileError> {
    // A file of the user's own may have any size; each array is bounded by the limits when it is
    // read.
    let mut arrays = Arrays::of(path, bytes, u64::MAX)?;
    // Many other files are zip archives, too.
    if !GRAPH_ARRAYS.iter().any(|array| arrays.has(array)) {
        let path = arrays.path().to_owned();
        let found = name_of_zip(&arrays.files());
        return Err(FileError::UnknownFormat { path, found });
    }
    let mut section = Section::new(&mut arrays, limits);
    let kind = section
        .task()
        .map_or(FileKind::FeatureNpz, FileKind::ConfigurationNpz);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let measured = section.measured_graph(name.into_owned(), bare_task)?;
    Ok((kind, measured))
}
