use std::{fs, path::Path};

use crate::{
    FileError, FileKind, GraphError, GraphSource, HloModule, Limits, MeasuredGraph, Scope, Task,
    module::inner_module,
    npz::read_npz,
    text,
    tuning::{TuningModule, malformed},
    wire::{Fields, Payload, bytes_field},
};

/// A file of graphs. Its format is recognized by its content.
#[derive(Debug)]
pub struct GraphFile {
    /// Format of the file.
    pub kind: FileKind,
    /// The graphs: any number in a `TuningData`, one in the other formats.
    pub graphs: Vec<MeasuredGraph>,
}

impl GraphFile {
    /// Reads a file. `bare_task` is the task of a graph without configurations.
    pub fn read(path: &Path, bare_task: Task, limits: &Limits) -> Result<Self, FileError> {
        let bytes =
            fs::read(path).map_err(|source| FileError::Io { path: path.display().to_string(), source })?;
        Self::of(path, bytes, bare_task, limits)
    }

    /// Reads the bytes of a file, as [`read`](Self::read) does. Errors name the `path`.
    pub fn of(path: &Path, bytes: Vec<u8>, bare_task: Task, limits: &Limits) -> Result<Self, FileError> {
        if bytes.starts_with(b"PK") {
            let (kind, graph) = read_npz(path, bytes, bare_task, limits)?;
            return Ok(Self { kind, graphs: vec![graph] });
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

    /// Returns one of the graphs of the file.
    pub fn into_graph(self, path: &Path, module: usize) -> Result<MeasuredGraph, FileError> {
        let modules = self.graphs.len();
        let path = path.display().to_string();
        self.graphs.into_iter().nth(module).ok_or(FileError::NoSuchModule { path, module, modules })
    }
}

/// Reads the graphs of a file of protobuf or text.
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
        let mut measured = measured_graph(serialized(tuning.module), module, task, configurable.clone())
            .map_err(graph_error)?;
        if measured.graph.configurable() != configurable {
            return Err(graph_error(GraphError::OtherSlots {
                found: configurable.len(),
                expected: measured.graph.configurable().len(),
            }));
        }
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
    match task.kind().scope {
        Scope::Nodes => module.arrays.default_configurable(),
        Scope::Kernel | Scope::Program | Scope::EveryNode => Vec::new(),
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

/// Returns the name of a serialized module and the form in which a client sends it.
fn serialized(module: &[u8]) -> (String, GraphSource) {
    let name =
        bytes_field(module, 1).map_or_else(String::new, |name| String::from_utf8_lossy(name).into_owned());
    (name, GraphSource::HloModule(module.to_vec()))
}
