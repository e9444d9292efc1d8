use std::path::Path;

use super::npy::Arrays;
use crate::{
    Configurations, FEATURES, FeatureGraph, FileError, FileKind, Graph, GraphArrays, GraphError,
    GraphSource, HloModule, Limits, MeasuredGraph, Measurements, OperandLists, Pad, Scope, Task,
    configuration::read_feature_rows, recognize::name_of_zip,
};

/// Name of the array of a program before fusion: the bytes of its `HloModuleProto`.
pub(super) const MODULE: &str = "hlo_module";

/// Maximum number of bytes of that array.
const MAX_GOLDEN_MODULE: usize = 8 << 20;

/// Name of the array of a graph of a feature set: the bytes of the set's name.
pub(super) const FEATURE_SET: &str = "feature_set";

/// Name of the array of [`OperandLists`](crate::OperandLists).
pub(super) const OPERANDS: &str = "operands";

/// Maximum number of bytes of that array that are read.
const MAX_SET_NAME: usize = 1 << 10;

/// Maximum number of features of all nodes of a graph.
const MAX_NODE_FEATURES: usize = 64 << 20;

/// The arrays of one graph.
struct Section<'a> {
    arrays: &'a mut Arrays,
    limits: &'a Limits,
}

impl<'a> Section<'a> {
    pub(super) fn new(arrays: &'a mut Arrays, limits: &'a Limits) -> Self {
        Self { arrays, limits }
    }

    /// Reads the graph and its measurements. `bare_task` is the task of an HLO graph without
    /// configurations.
    fn measured_graph(
        &mut self,
        name: String,
        bare_task: Task,
    ) -> Result<MeasuredGraph, FileError> {
        let task = self.task();
        let bare_task = if self.arrays.has(FEATURE_SET) {
            Task::FeatureSet
        } else {
            bare_task
        };
        let graph = self.graph(task.unwrap_or(bare_task))?;
        Ok(MeasuredGraph {
            name,
            source: GraphSource::Features,
            node_splits: self.node_splits(&graph)?,
            nodes: Vec::new(),
            measurements: task.map(|_| self.measurements(&graph)).transpose()?,
            graph,
        })
    }

    /// Reads the scores of a golden case, one per configuration.
    fn scores(&mut self, expected: usize) -> Result<Vec<f32>, FileError> {
        let scores = self.arrays.floats("score", self.limits.configs)?;
        let found = scores.len();
        if found != expected {
            let detail = format!("{found} values for {expected} configurations");
            return Err(self.arrays.error("score", &detail));
        }
        Ok(scores)
    }

    fn node_splits(&mut self, graph: &Graph) -> Result<Vec<usize>, FileError> {
        if self.arrays.has("node_splits") {
            self.arrays.integers("node_splits", self.limits.nodes)
        } else {
            Ok(vec![0, graph.len()])
        }
    }

    /// The task of the configurations in this section, if it has any.
    pub(super) fn task(&self) -> Option<Task> {
        Task::ALL
            .into_iter()
            .find(|task| self.arrays.has(task.kind().array))
    }

    fn no_configurations(&self) -> FileError {
        let arrays = Task::ALL.map(|task| task.kind().array);
        self.arrays.error(&arrays.join(" or "), &"missing")
    }

    pub(super) fn graph(&mut self, task: Task) -> Result<Graph, FileError> {
        match task.kind().scope {
            Scope::EveryNode => self.feature_graph(),
            Scope::Program => self.program(task),
            Scope::Kernel | Scope::Nodes => {
                let arrays = self.graph_arrays()?;
                let configurable = self.configurable(task, &arrays)?;
                Graph::new(task, arrays, configurable).map_err(|error| self.graph_error(error))
            }
        }
    }

    fn configurable(&mut self, task: Task, arrays: &GraphArrays) -> Result<Vec<u32>, FileError> {
        if task.kind().scope == Scope::Kernel {
            return Ok(Vec::new());
        }
        // A file of features alone does not list the nodes, so those that a tuner usually sets are
        // taken.
        if !self.arrays.has("node_config_ids") {
            return Ok(arrays.default_configurable());
        }
        self.arrays
            .check_shape("node_config_ids", &[("slots", None)])?;
        self.arrays.integers("node_config_ids", self.limits.nodes)
    }

    /// Reads the serialized module of a program before fusion, which its features alone do not give.
    fn program(&mut self, task: Task) -> Result<Graph, FileError> {
        let bytes: Vec<u8> = self.arrays.integers(MODULE, MAX_GOLDEN_MODULE)?;
        let module = HloModule::read(&bytes, self.limits);
        module
            .and_then(|module| module.into_graph(task, Vec::new()))
            .map_err(|error| self.graph_error(error))
    }

    fn graph_arrays(&mut self) -> Result<GraphArrays, FileError> {
        self.arrays.check_shape("node_opcode", &[("nodes", None)])?;
        let opcodes: Vec<u8> = self.arrays.integers("node_opcode", self.limits.nodes)?;
        self.arrays.check_shape(
            "node_feat",
            &[("nodes", Some(opcodes.len())), ("features", Some(FEATURES))],
        )?;
        let features = self.arrays.floats("node_feat", opcodes.len() * FEATURES)?;
        let edges = self.edges()?;
        // The format does not say how sequences are padded, but the values show it.
        let pad = Pad::of_features(&features);
        let operands = if self.arrays.has(OPERANDS) {
            let most = OperandLists::max_numbers(self.limits);
            self.arrays.integers(OPERANDS, most)?
        } else {
            Vec::new()
        };
        let arrays = GraphArrays::from_features(opcodes, features, edges, pad, self.limits);
        let arrays = arrays.and_then(|arrays| arrays.with_operands(operands));
        arrays.map_err(|error| self.graph_error(error))
    }

    fn feature_graph(&mut self) -> Result<Graph, FileError> {
        let name: Vec<u8> = self.arrays.integers(FEATURE_SET, MAX_SET_NAME)?;
        let name = String::from_utf8(name);
        let name = name.map_err(|_| self.graph_error(GraphError::FeatureSetName))?;
        let (nodes, features) = self.node_features()?;
        let edges = self.edges()?;
        let graph = FeatureGraph::new(name, nodes, features, edges, self.limits);
        graph
            .map(Graph::of_features)
            .map_err(|error| self.graph_error(error))
    }

    /// Reads the features of the nodes of a feature set: the number of nodes, and `[nodes,
    /// columns]` values.
    fn node_features(&mut self) -> Result<(usize, Vec<f32>), FileError> {
        let array = "node_features";
        let shape = self.arrays.shape(array)?;
        let [nodes, columns] = shape[..] else {
            let detail = format!("has shape {shape:?}, expected [nodes, columns]");
            return Err(self.arrays.error(array, &detail));
        };
        if nodes > self.limits.nodes {
            return Err(self.graph_error(GraphError::too_many_nodes(self.limits)));
        }
        // The product is a claim of the header, so it may overflow.
        let most = nodes.saturating_mul(columns).min(MAX_NODE_FEATURES);
        Ok((nodes, self.arrays.floats(array, most)?))
    }

    fn edges(&mut self) -> Result<Vec<[u32; 2]>, FileError> {
        let shape = self.arrays.shape("edge_index")?;
        match shape[..] {
            // Without edges, numpy often has the shape [0].
            _ if shape.contains(&0) => return Ok(Vec::new()),
            [_, 2] => {}
            // PyTorch Geometric has edges in this shape, and as source and target.
            [2, edges] => {
                let detail = format!(
                    "has shape [2, {edges}], expected [edges, 2], each edge as consumer and producer; transpose it, and \
                     swap the rows if they are source and target"
                );
                return Err(self.arrays.error("edge_index", &detail));
            }
            _ => self
                .arrays
                .check_shape("edge_index", &[("edges", None), ("2", Some(2))])?,
        }
        let edges = self
            .arrays
            .integers::<u32>("edge_index", 2 * self.limits.edges)?;
        Ok(edges.as_chunks::<2>().0.to_vec())
    }

    fn graph_error(&self, source: GraphError) -> FileError {
        FileError::Graph {
            path: self.arrays.path().to_owned(),
            module: 0,
            source,
        }
    }

    pub(super) fn configurations(&mut self, graph: &Graph) -> Result<Configurations, FileError> {
        let kind = graph.task().kind();
        let slots = graph.configurable().len();
        let limits = *self.limits;
        // A row is in memory as a whole, and a shape may claim any length: kinds without a width of
        // their own get at most the limit.
        let row_length = |shape: &[usize]| {
            let length = kind.row_length(slots, shape);
            let length = length.filter(|length| kind.width > 0 || *length <= limits.config_entries);
            length.ok_or_else(|| {
                let expected = kind.expected_shape(slots);
                format!("has shape {shape:?}, expected {expected}")
            })
        };
        read_feature_rows(graph.task(), slots, limits, |take| {
            self.arrays.float_rows(kind.array, row_length, take)
        })?
        .map_err(|source| self.arrays.configuration_error(source))
    }

    fn measurements(&mut self, graph: &Graph) -> Result<Measurements, FileError> {
        let configurations = self.configurations(graph)?;
        let configs = configurations.len();
        let run_times = self.of_each_configuration("config_runtime", configs)?;
        Ok(Measurements {
            configurations,
            // A ranking needs no run times, and 0 means not measured.
            run_times: run_times.unwrap_or_else(|| vec![0; configs]),
            normalizers: self.of_each_configuration("config_runtime_normalizers", configs)?,
            default: None,
            numbers: (0..configs).collect(),
            skipped: 0,
        })
    }

    /// Reads one integer per configuration; nothing if the array is missing.
    fn of_each_configuration(
        &mut self,
        array: &str,
        configs: usize,
    ) -> Result<Option<Vec<i64>>, FileError> {
        if !self.arrays.has(array) {
            return Ok(None);
        }
        self.arrays
            .check_shape(array, &[("configurations", Some(configs))])?;
        self.arrays.integers(array, self.limits.configs).map(Some)
    }
}

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
    let mut arrays = Arrays::parse(path, bytes, MAX_EXPORTED_BYTES)?;
    if !arrays.has(EXPORTED) {
        return Ok(None);
    }
    arrays.bytes(EXPORTED, MAX_EXPORTED).map(Some)
}

/// Reads the bytes of `golden.npz` of an artifact, whose arrays may have 64 MiB. Each case `0/`, `1/` … holds the arrays of
/// spec §7 and `score`. A case of fusions holds `hlo_module` in place of the graph, and the bits of each configuration as the
/// bytes `fused`. A case of a feature set holds the arrays of its measured files. Errors name the `path`.
pub fn read_golden_cases(
    path: &Path,
    bytes: Vec<u8>,
    limits: &Limits,
) -> Result<Vec<GoldenCase>, FileError> {
    let mut arrays = Arrays::parse(path, bytes, MAX_GOLDEN_BYTES)?;
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
    let mut arrays = Arrays::parse(path, bytes, u64::MAX)?;
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
