use std::{fmt, fs, path::Path};

use hlorank_proto::tpu_graphs::ConfigProfile;
use prost::Message as _;

use crate::{
    Configurations, FileError, Graph, GraphError, HloModule, Limits, NodeDescription, Task,
    module::{holds_computations, inner_module, wrapped_message},
    npz::read_npz,
    text,
    tuning::{TuningModule, malformed},
    wire::{Fields, Payload, bytes_field},
};

/// A file of graphs, told apart by content.
#[derive(Debug)]
pub struct GraphFile {
    /// What it is.
    pub kind: FileKind,
    /// Its graphs: many in a `TuningData`, else one.
    pub graphs: Vec<MeasuredGraph>,
}

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// HLO text.
    HloText,
    /// `xla.HloModuleProto`.
    HloModule,
    /// `xla.HloProto`.
    HloProto,
    /// `tpu_graphs.ModuleTuningData`: a layout graph, or one kernel.
    ModuleTuningData,
    /// `tpu_graphs.TuningData`: kernels.
    TuningData,
    /// `TpuGraphs` npz of a layout graph.
    LayoutNpz,
    /// `TpuGraphs` npz of a kernel.
    TileNpz,
    /// An npz of features without configurations.
    FeatureNpz,
}

impl fmt::Display for FileKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::HloText => "HLO text",
            Self::HloModule => "HloModuleProto",
            Self::HloProto => "HloProto",
            Self::ModuleTuningData => "ModuleTuningData",
            Self::TuningData => "TuningData",
            Self::LayoutNpz => "layout npz",
            Self::TileNpz => "tile npz",
            Self::FeatureNpz => "feature npz",
        })
    }
}

/// A graph, and what was measured of it.
#[derive(Debug)]
pub struct MeasuredGraph {
    /// Name of the module, or of the file.
    pub name: String,
    /// What a client sends for it.
    pub source: GraphSource,
    /// The graph.
    pub graph: Graph,
    /// `TpuGraphs`' `node_splits`.
    pub node_splits: Vec<usize>,
    /// The configurable nodes, in slot order; empty where the file has only features.
    pub nodes: Vec<NodeDescription>,
    /// Configurations and their run times, where the file has some.
    pub measurements: Option<Measurements>,
}

/// What a client sends for a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphSource {
    /// This serialized `HloModuleProto`.
    HloModule(Vec<u8>),
    /// This HLO text.
    HloText(String),
    /// The arrays of the graph itself.
    Features,
}

/// Configurations and their measured run times.
#[derive(Debug)]
pub struct Measurements {
    /// The configurations.
    pub configurations: Configurations,
    /// `[configs]` nanoseconds; all 0 in `TpuGraphs`' test files.
    pub run_times: Vec<i64>,
    /// `[configs]` run times to divide by: that of the kernel's default.
    pub normalizers: Option<Vec<i64>>,
    /// The configuration that the compiler takes by itself, where known.
    pub default: Option<usize>,
    /// `[configs]` which run of the file each one is, from 0: runs that are left out keep their numbers.
    pub numbers: Vec<usize>,
    /// Runs of the file that failed or do not fit the graph.
    pub skipped: usize,
}

impl GraphFile {
    /// Reads a file; `bare_task` is the task of a graph that comes without configurations.
    pub fn read(path: &Path, bare_task: Task, limits: &Limits) -> Result<Self, FileError> {
        let bytes =
            fs::read(path).map_err(|source| FileError::Io { path: path.display().to_string(), source })?;
        Self::of(path, bytes, bare_task, limits)
    }

    /// Reads the bytes of a file, as [`read`](Self::read) does; errors name the `path`.
    pub fn of(path: &Path, bytes: Vec<u8>, bare_task: Task, limits: &Limits) -> Result<Self, FileError> {
        if bytes.starts_with(b"PK") {
            return read_npz(path, bytes, bare_task, limits);
        }
        let name = path.display().to_string();
        let kind = FileKind::of(&bytes).ok_or_else(|| FileError::UnknownFormat { path: name.clone() })?;
        let reader = Reader { path: &name, limits };
        let graphs = match kind {
            FileKind::TuningData => reader.kernels(&bytes)?,
            FileKind::ModuleTuningData => vec![reader.tuning(0, &bytes)?],
            FileKind::HloText => vec![reader.text(&bytes, bare_task)?],
            _ => vec![reader.module(&bytes, bare_task)?],
        };
        Ok(Self { kind, graphs })
    }

    /// Takes one of the graphs out of the file.
    pub fn into_graph(self, path: &Path, module: usize) -> Result<MeasuredGraph, FileError> {
        let modules = self.graphs.len();
        let path = path.display().to_string();
        self.graphs.into_iter().nth(module).ok_or(FileError::NoSuchModule { path, module, modules })
    }
}

impl FileKind {
    /// Tells text by its first word, and the protobuf messages by what field 1 of each holds; `None` if it is none
    /// of them.
    fn of(bytes: &[u8]) -> Option<Self> {
        if text::is_hlo_text(bytes) {
            return Some(Self::HloText);
        }
        match wrapped_message(bytes) {
            Some(inner) if wrapped_message(inner).is_some() => Some(Self::TuningData),
            Some(_) if is_tuning(bytes) => Some(Self::ModuleTuningData),
            Some(_) => Some(Self::HloProto),
            None => holds_computations(bytes).then_some(Self::HloModule),
        }
    }
}

/// Whether a message around a module is a `ModuleTuningData`, not an `HloProto`: it has a fingerprint or
/// configurable nodes, or its field 3 is a run and not a buffer assignment.
fn is_tuning(bytes: &[u8]) -> bool {
    Fields::of(bytes).map_while(Result::ok).any(|field| match field {
        (2 | 4, _) => true,
        (3, Payload::Bytes(run)) => ConfigProfile::decode(run).is_ok_and(|run| run.config.is_some()),
        _ => false,
    })
}

/// Reads the graphs of one file of protobuf or text.
struct Reader<'a> {
    path: &'a str,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn kernels(&self, bytes: &[u8]) -> Result<Vec<MeasuredGraph>, FileError> {
        let mut kernels = Vec::new();
        for field in Fields::of(bytes) {
            let field = field.map_err(|error| self.graph_error(kernels.len(), malformed(&error)))?;
            if let (1, Payload::Bytes(kernel)) = field {
                kernels.push(self.tuning(kernels.len(), kernel)?);
            }
        }
        Ok(kernels)
    }

    fn tuning(&self, number: usize, bytes: &[u8]) -> Result<MeasuredGraph, FileError> {
        let graph_error = |source| self.graph_error(number, source);
        let tuning = TuningModule::read(bytes).map_err(graph_error)?;
        let module = HloModule::read(tuning.module, self.limits).map_err(graph_error)?;
        let configurable = tuning.configurable(&module).map_err(graph_error)?;
        let task = tuning.task();
        let mut measured =
            measured_graph(serialized(tuning.module), module, task, configurable).map_err(graph_error)?;
        measured.measurements = tuning.measurements(self.limits).map_err(|source| {
            FileError::Configuration { path: self.path.to_owned(), module: number, source }
        })?;
        Ok(measured)
    }

    fn module(&self, bytes: &[u8], task: Task) -> Result<MeasuredGraph, FileError> {
        let graph_error = |source| self.graph_error(0, source);
        let bytes = inner_module(bytes).map_err(graph_error)?;
        let module = HloModule::read(bytes, self.limits).map_err(graph_error)?;
        let configurable = configurable(&module, task);
        measured_graph(serialized(bytes), module, task, configurable).map_err(graph_error)
    }

    fn text(&self, bytes: &[u8], task: Task) -> Result<MeasuredGraph, FileError> {
        let graph_error = |source| self.graph_error(0, source);
        let text = text::text_of(bytes).map_err(graph_error)?;
        let module = HloModule::read_text(text, self.limits).map_err(graph_error)?;
        let configurable = configurable(&module, task);
        let named = (text::module_name(text).to_owned(), GraphSource::HloText(text.to_owned()));
        measured_graph(named, module, task, configurable).map_err(graph_error)
    }

    fn graph_error(&self, module: usize, source: GraphError) -> FileError {
        FileError::Graph { path: self.path.to_owned(), module, source }
    }
}

fn configurable(module: &HloModule<'_>, task: Task) -> Vec<u32> {
    match task {
        Task::Layout => module.arrays.default_configurable(),
        Task::Tile => Vec::new(),
    }
}

fn measured_graph(
    (name, source): (String, GraphSource),
    mut module: HloModule<'_>,
    task: Task,
    configurable: Vec<u32>,
) -> Result<MeasuredGraph, GraphError> {
    let node_splits = std::mem::take(&mut module.node_splits);
    let (graph, nodes) = module.into_described_graph(task, configurable)?;
    Ok(MeasuredGraph { name, source, graph, node_splits, nodes, measurements: None })
}

/// The name of a serialized module, and the module as a client sends it.
fn serialized(module: &[u8]) -> (String, GraphSource) {
    let name =
        bytes_field(module, 1).map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned());
    (name, GraphSource::HloModule(module.to_vec()))
}
