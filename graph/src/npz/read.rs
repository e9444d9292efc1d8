use std::path::Path;

use super::array::Arrays;
use crate::{
    Configurations, FEATURES, FeatureGraph, FileError, FileKind, Graph, GraphArrays, GraphError,
    GraphSource, HloModule, Limits, MeasuredGraph, Measurements, Pad, Scope, Task,
    configuration::feature_rows, recognize::name_of_zip,
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

/// Name of the array of a program before fusion: the bytes of its `HloModuleProto`.
const MODULE: &str = "hlo_module";

/// Maximum number of bytes of that array.
const MAX_GOLDEN_MODULE: usize = 8 << 20;

/// Name of the array of a graph of a feature set: the bytes of the set's name.
pub(super) const FEATURE_SET: &str = "feature_set";

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
    arrays.bytes(EXPORTED, MAX_EXPORTED).map(Some)
}

/// Maximum number of bytes of that array that are read.
const MAX_SET_NAME: usize = 1 << 10;

/// Maximum number of features of all nodes of a graph.
const MAX_NODE_FEATURES: usize = 64 << 20;

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
    let has_case = |arrays: &Arrays, case: usize| {
        ["node_feat", MODULE, FEATURE_SET]
            .iter()
            .any(|array| arrays.has(&format!("{case}/{array}")))
    };
    while has_case(&arrays, cases.len()) {
        let mut case = Section {
            arrays: &mut arrays,
            prefix: format!("{}/", cases.len()),
            limits,
        };
        let task = case.task().ok_or_else(|| case.no_configurations())?;
        let graph = case.graph(task)?;
        let configurations = case.configurations(&graph)?;
        let scores = case.floats("score", limits.configs)?;
        let (found, expected) = (scores.len(), configurations.len());
        if found != expected {
            let detail = format!("{found} values for {expected} configurations");
            return Err(case.arrays.error(&case.name("score"), &detail));
        }
        cases.push(GoldenCase {
            graph,
            configurations,
            scores,
        });
    }
    Ok(cases)
}

/// Reads an npz file of `TpuGraphs` or of a feature set. `bare_task` is the task of a file without configurations.
pub(crate) fn read_npz(
    path: &Path,
    bytes: Vec<u8>,
    bare_task: Task,
    limits: &Limits,
) -> Result<(FileKind, MeasuredGraph), FileError> {
    let mut arrays = Arrays::of(path, bytes, u64::MAX)?;
    if !GRAPH_ARRAYS.iter().any(|array| arrays.has(array)) {
        let path = arrays.path().to_owned();
        let found = name_of_zip(&arrays.files());
        return Err(FileError::UnknownFormat { path, found });
    }
    let mut section = Section {
        arrays: &mut arrays,
        prefix: String::new(),
        limits,
    };
    let task = section.task();
    let kind = task.map_or(FileKind::FeatureNpz, FileKind::ConfigurationNpz);
    let bare_task = if section.has(FEATURE_SET) {
        Task::FeatureSet
    } else {
        bare_task
    };
    let graph = section.graph(task.unwrap_or(bare_task))?;
    let node_splits = if section.has("node_splits") {
        section.small_integers("node_splits", limits.nodes)?
    } else {
        vec![0, graph.len()]
    };
    let measurements = match kind {
        FileKind::FeatureNpz => None,
        _ => Some(section.measurements(&graph)?),
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let measured = MeasuredGraph {
        name: name.into_owned(),
        source: GraphSource::Features,
        graph,
        node_splits,
        nodes: Vec::new(),
        measurements,
    };
    Ok((kind, measured))
}

/// The arrays of one graph, whose names have a common prefix.
struct Section<'a> {
    arrays: &'a mut Arrays,
    prefix: String,
    limits: &'a Limits,
}

impl Section<'_> {
    fn name(&self, array: &str) -> String {
        format!("{}{array}", self.prefix)
    }

    /// The task of the configurations in this section, if it has any.
    fn task(&self) -> Option<Task> {
        Task::ALL
            .into_iter()
            .find(|task| self.has(task.kind().array))
    }

    fn no_configurations(&self) -> FileError {
        let arrays = Task::ALL.map(|task| task.kind().array);
        self.arrays
            .error(&self.name(&arrays.join(" or ")), &"missing")
    }

    fn has(&self, array: &str) -> bool {
        self.arrays.has(&self.name(array))
    }

    fn integers(&mut self, array: &str, limit: usize) -> Result<Vec<i64>, FileError> {
        self.arrays.integers(&self.name(array), limit)
    }

    fn check_shape(
        &mut self,
        array: &str,
        expected: &[(&str, Option<usize>)],
    ) -> Result<(), FileError> {
        self.arrays.check_shape(&self.name(array), expected)
    }

    fn floats(&mut self, array: &str, limit: usize) -> Result<Vec<f32>, FileError> {
        self.arrays.floats(&self.name(array), limit)
    }

    /// Reads integers that must fit a smaller type: opcodes, node numbers.
    fn small_integers<T: TryFrom<i64>>(
        &mut self,
        array: &str,
        limit: usize,
    ) -> Result<Vec<T>, FileError> {
        let values = self.integers(array, limit)?;
        let small = values
            .iter()
            .map(|&value| T::try_from(value).map_err(|_| value));
        let small: Result<Vec<T>, i64> = small.collect();
        small.map_err(|value| {
            self.arrays
                .error(&self.name(array), &format!("value {value} is out of range"))
        })
    }

    fn graph(&mut self, task: Task) -> Result<Graph, FileError> {
        match task.kind().scope {
            Scope::EveryNode => self.feature_graph(),
            Scope::Program => self.program(task),
            Scope::Kernel => {
                let arrays = self.graph_arrays()?;
                self.graph_of(task, arrays, Vec::new())
            }
            Scope::Nodes => {
                let arrays = self.graph_arrays()?;
                let configurable = if self.has("node_config_ids") {
                    self.check_shape("node_config_ids", &[("slots", None)])?;
                    self.small_integers("node_config_ids", self.limits.nodes)?
                } else {
                    arrays.default_configurable()
                };
                self.graph_of(task, arrays, configurable)
            }
        }
    }

    fn graph_of(
        &self,
        task: Task,
        arrays: GraphArrays,
        configurable: Vec<u32>,
    ) -> Result<Graph, FileError> {
        Graph::new(task, arrays, configurable).map_err(|error| self.graph_error(error))
    }

    /// Reads the serialized module of a program before fusion, which its features alone do not give.
    fn program(&mut self, task: Task) -> Result<Graph, FileError> {
        let bytes: Vec<u8> = self.small_integers(MODULE, MAX_GOLDEN_MODULE)?;
        let module = HloModule::read(&bytes, self.limits);
        module
            .and_then(|module| module.into_graph(task, Vec::new()))
            .map_err(|error| self.graph_error(error))
    }

    fn graph_arrays(&mut self) -> Result<GraphArrays, FileError> {
        self.check_shape("node_opcode", &[("nodes", None)])?;
        let opcodes: Vec<u8> = self.small_integers("node_opcode", self.limits.nodes)?;
        self.check_shape(
            "node_feat",
            &[("nodes", Some(opcodes.len())), ("features", Some(FEATURES))],
        )?;
        let features = self.floats("node_feat", opcodes.len() * FEATURES)?;
        let edges = self.edges()?;
        let pad = Pad::of_features(&features);
        let arrays = GraphArrays::from_features(opcodes, features, edges, pad, self.limits);
        arrays.map_err(|error| self.graph_error(error))
    }

    fn feature_graph(&mut self) -> Result<Graph, FileError> {
        let name: Vec<u8> = self.small_integers(FEATURE_SET, MAX_SET_NAME)?;
        let name = String::from_utf8(name);
        let name = name.map_err(|_| self.graph_error(GraphError::FeatureSetName))?;
        self.check_shape("node_features", &[("nodes", None), ("columns", None)])?;
        let array = self.name("node_features");
        let shape = self.arrays.shape(&array)?;
        let [nodes, columns] = shape[..] else {
            return Err(self.arrays.error(&array, &format!("has shape {shape:?}")));
        };
        if nodes > self.limits.nodes {
            return Err(self.graph_error(GraphError::too_many_nodes(self.limits)));
        }
        let most = nodes.saturating_mul(columns).min(MAX_NODE_FEATURES);
        let features = self.floats("node_features", most)?;
        let edges = self.edges()?;
        let graph = FeatureGraph::new(name, nodes, features, edges, self.limits);
        graph
            .map(Graph::of_features)
            .map_err(|error| self.graph_error(error))
    }

    fn edges(&mut self) -> Result<Vec<[u32; 2]>, FileError> {
        let shape = self.arrays.shape(&self.name("edge_index"))?;
        match shape[..] {
            // Without edges, numpy often has the shape [0].
            _ if shape.contains(&0) => return Ok(Vec::new()),
            [_, 2] => {}
            [2, edges] => {
                let detail = format!(
                    "has shape [2, {edges}], expected [edges, 2], each edge as consumer and producer; transpose it, and swap \
                     the rows if they are source and target"
                );
                return Err(self.arrays.error(&self.name("edge_index"), &detail));
            }
            _ => self.check_shape("edge_index", &[("edges", None), ("2", Some(2))])?,
        }
        let edges = self.small_integers::<u32>("edge_index", 2 * self.limits.edges)?;
        Ok(edges.as_chunks::<2>().0.to_vec())
    }

    fn graph_error(&self, source: GraphError) -> FileError {
        FileError::Graph {
            path: self.arrays.path().to_owned(),
            module: 0,
            source,
        }
    }

    fn configurations(&mut self, graph: &Graph) -> Result<Configurations, FileError> {
        let kind = graph.task().kind();
        let slots = graph.configurable().len();
        let mut rows = feature_rows(graph.task(), slots, *self.limits);
        let limit = self.limits.config_entries;
        // A row is in memory as a whole, and a shape may claim any.
        let row_length = |shape: &[usize]| {
            let length = kind
                .row_length(slots, shape)
                .filter(|length| kind.width > 0 || *length <= limit);
            length.ok_or_else(|| {
                format!(
                    "has shape {shape:?}, expected {}",
                    kind.expected_shape(slots)
                )
            })
        };
        self.arrays
            .float_rows(&self.name(kind.array), row_length, |row| rows.push(row))?;
        let path = self.arrays.path().to_owned();
        rows.finish().map_err(|source| FileError::Configuration {
            path,
            module: 0,
            source,
        })
    }

    fn measurements(&mut self, graph: &Graph) -> Result<Measurements, FileError> {
        let configurations = self.configurations(graph)?;
        let configs = configurations.len();
        // A ranking needs no run times, and 0 means not measured.
        let run_times = if self.has("config_runtime") {
            self.check_shape("config_runtime", &[("configurations", Some(configs))])?;
            self.integers("config_runtime", self.limits.configs)?
        } else {
            vec![0; configs]
        };
        let normalizers = if self.has("config_runtime_normalizers") {
            self.check_shape(
                "config_runtime_normalizers",
                &[("configurations", Some(configs))],
            )?;
            Some(self.integers("config_runtime_normalizers", self.limits.configs)?)
        } else {
            None
        };
        let numbers = (0..configurations.len()).collect();
        Ok(Measurements {
            configurations,
            run_times,
            normalizers,
            default: None,
            numbers,
            skipped: 0,
        })
    }
}
