#[cfg(unix)]
use std::os::unix::fs::FileTypeExt as _;
use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    FileError, FileKind, GraphError, GraphSource, HloModule, Limits, MeasuredGraph, Scope, Task,
    npz::read_npz,
    recognize::{
        MAX_MODULES, TextModule, decoded, inner_module, modules_of, name_of, unpacked, with_header,
    },
    syntax::text_of,
    text,
    tuning::{TuningModule, malformed},
    wire::{Fields, Payload, bytes_field},
};

/// A file of graphs. Its format is recognized by its content.
#[derive(Debug)]
pub struct GraphFile {
    /// Format of the file.
    pub kind: FileKind,
    /// The graphs: any number in a `TuningData` and in text, one in the other formats.
    pub graphs: Vec<MeasuredGraph>,
}

impl GraphFile {
    /// Reads a file, or standard input if the path is `-`. `bare_task` is the task of a graph without configurations.
    pub fn read(path: &Path, bare_task: Task, limits: &Limits) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let io_error = |source| FileError::Io {
            path: name.clone(),
            source,
        };
        if path == Path::new(STANDARD_INPUT) {
            let bytes = read_input(path).map_err(io_error)?;
            return Self::parse(path, bytes, bare_task, limits);
        }
        let kind = fs::metadata(path).map_err(io_error)?.file_type();
        #[cfg(unix)]
        let is_device = kind.is_char_device() || kind.is_block_device();
        #[cfg(not(unix))]
        let is_device = false;
        // A device may block whoever reads it, or never end.
        if kind.is_dir() || is_device {
            let found = if is_device { "a device" } else { "a folder" };
            return Err(FileError::NoFile { path: name, found });
        }
        // The size of a file is known before it is read, but that of a pipe is not, and a pipe may
        // never end.
        let bytes = if kind.is_file() {
            fs::read(path)
        } else {
            fs::File::open(path).and_then(read_pipe)
        };
        Self::parse(path, bytes.map_err(io_error)?, bare_task, limits)
    }

    /// Reads the bytes of a file, which may be compressed with gzip or zstd, as [`read`](Self::read) does. Errors name the
    /// `path`.
    pub fn parse(
        path: &Path,
        bytes: Vec<u8>,
        bare_task: Task,
        limits: &Limits,
    ) -> Result<Self, FileError> {
        let name = path.display().to_string();
        let bytes = unpacked(&name, bytes)?;
        // An npz file is a zip archive.
        if bytes.starts_with(b"PK") {
            let (kind, graph) = read_npz(path, bytes, bare_task, limits)?;
            return Ok(Self {
                kind,
                graphs: vec![graph],
            });
        }
        let reader = Reader {
            path: &name,
            limits,
        };
        let (kind, graphs) = match FileKind::recognize(&bytes) {
            Some(kind) => (kind, reader.graphs(kind, &bytes, bare_task)?),
            None => (FileKind::HloText, reader.other_text(&bytes, bare_task)?),
        };
        Ok(Self { kind, graphs })
    }

    /// Returns one of the graphs of the file.
    pub fn into_graph(self, path: &Path, module: usize) -> Result<MeasuredGraph, FileError> {
        let modules = self.graphs.len();
        let path = path.display().to_string();
        self.graphs
            .into_iter()
            .nth(module)
            .ok_or(FileError::NoSuchModule {
                path,
                module,
                modules,
            })
    }
}

/// Reads the graphs of a file of protobuf or text.
struct Reader<'a> {
    path: &'a str,
    limits: &'a Limits,
}

impl Reader<'_> {
    fn graphs(
        &self,
        kind: FileKind,
        bytes: &[u8],
        bare_task: Task,
    ) -> Result<Vec<MeasuredGraph>, FileError> {
        match kind {
            FileKind::TuningData => {
                let mut kernels = Vec::new();
                for field in Fields::new(bytes) {
                    let field = field
                        .map_err(|error| self.graph_error(kernels.len(), malformed(&error)))?;
                    if let (1, Payload::Bytes(kernel)) = field {
                        kernels.push(self.tuning(kernels.len(), kernel)?);
                    }
                }
                Ok(kernels)
            }
            FileKind::ModuleTuningData => Ok(vec![self.tuning(0, bytes)?]),
            FileKind::HloText => self.text(bytes, bare_task),
            _ => Ok(vec![self.module(bytes, bare_task)?]),
        }
    }

    fn tuning(&self, number: usize, bytes: &[u8]) -> Result<MeasuredGraph, FileError> {
        let graph_error = |source| self.graph_error(number, source);
        let tuning = TuningModule::read(bytes).map_err(graph_error)?;
        let module = HloModule::read(tuning.module, self.limits).map_err(graph_error)?;
        let configurable = tuning.configurable(&module).map_err(graph_error)?;
        let task = tuning.task();
        let source = serialized(tuning.module);
        let measured = measured_graph(source, module, task, configurable.clone());
        let mut measured = measured.map_err(graph_error)?;
        // The slots of fusions follow from the module. Bits for others would mean other nodes.
        let slots = measured.graph.configurable();
        if slots != configurable {
            return Err(graph_error(GraphError::OtherSlots {
                found: configurable.len(),
                expected: slots.len(),
            }));
        }
        let measurements = tuning.measurements(self.limits);
        measured.measurements = measurements.map_err(|source| FileError::Configuration {
            path: self.path.to_owned(),
            module: number,
            source,
        })?;
        Ok(measured)
    }

    fn module(&self, bytes: &[u8], task: Task) -> Result<MeasuredGraph, FileError> {
        let graph_error = |source| self.graph_error(0, source);
        let module = HloModule::read(bytes, self.limits).map_err(graph_error)?;
        // Clients send the module without the message around it.
        let bytes = inner_module(bytes);
        let configurable = configurable(&module, task);
        measured_graph(serialized(bytes), module, task, configurable).map_err(graph_error)
    }

    /// Reads text that begins with a module. Only if that is not all of it, the text is searched for modules.
    fn text(&self, bytes: &[u8], task: Task) -> Result<Vec<MeasuredGraph>, FileError> {
        let text = text_of(bytes).map_err(|source| self.graph_error(0, source))?;
        let refused = match self.one_text(text, task) {
            Ok(graph) => return Ok(vec![graph]),
            Err(error) => error,
        };
        let modules = modules_of(text);
        let is_part = |module: &TextModule| {
            module.first_line > 0 || module.text.trim_end() != text.trim_end()
        };
        if modules.len() > 1 || modules.first().is_some_and(is_part) {
            return self.text_modules(&modules, task);
        }
        Err(self.graph_error(0, refused))
    }

    /// Reads text that does not begin with a module, but may contain some.
    fn other_text(&self, bytes: &[u8], task: Task) -> Result<Vec<MeasuredGraph>, FileError> {
        let text = decoded(bytes);
        let modules = modules_of(&text);
        if !modules.is_empty() {
            return self.text_modules(&modules, task);
        }
        let Some((text, added)) = with_header(&text) else {
            return Err(FileError::UnknownFormat {
                path: self.path.to_owned(),
                found: name_of(bytes),
            });
        };
        // Errors give the place in the file, which lacks the lines that were added.
        let place = |line: usize, column| (line.saturating_sub(added).max(1), column);
        let graph = self.one_text(&text, task);
        let graph = graph.map_err(|error| self.graph_error(0, moved(error, place)))?;
        Ok(vec![graph])
    }

    fn text_modules(
        &self,
        modules: &[TextModule],
        task: Task,
    ) -> Result<Vec<MeasuredGraph>, FileError> {
        if modules.len() > MAX_MODULES {
            return Err(FileError::TooManyModules {
                path: self.path.to_owned(),
                limit: MAX_MODULES,
            });
        }
        let read = |(number, module): (usize, &TextModule)| {
            let graph = self.one_text(&module.text, task);
            graph.map_err(|error| {
                self.graph_error(
                    number,
                    moved(error, |line, column| module.place(line, column)),
                )
            })
        };
        modules.iter().enumerate().map(read).collect()
    }

    fn one_text(&self, text: &str, task: Task) -> Result<MeasuredGraph, GraphError> {
        let module = HloModule::read_one(text, self.limits)?;
        let configurable = configurable(&module, task);
        let named = (
            text::module_name(text).to_owned(),
            GraphSource::HloText(text.to_owned()),
        );
        measured_graph(named, module, task, configurable)
    }

    fn graph_error(&self, module: usize, source: GraphError) -> FileError {
        FileError::Graph {
            path: self.path.to_owned(),
            module,
            source,
        }
    }
}

/// The path that stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Maximum number of bytes that are read from a pipe.
const MAX_PIPE: u64 = 4 << 30;

/// Whether standard input was read, which has nothing more for a second file.
static WAS_READ: AtomicBool = AtomicBool::new(false);

/// Reads a file of a command, or standard input if the path is `-`.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new(STANDARD_INPUT) {
        return fs::read(path);
    }
    if WAS_READ.swap(true, Ordering::Relaxed) {
        let twice = "standard input is one file, and another argument has read it";
        return Err(io::Error::other(twice));
    }
    read_pipe(io::stdin().lock())
}

fn read_pipe(pipe: impl io::Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The byte beyond the maximum shows that a pipe has too many.
    let read = pipe.take(MAX_PIPE + 1).read_to_end(&mut bytes)?;
    if read as u64 > MAX_PIPE {
        return Err(io::Error::other(format!(
            "the pipe has more than {MAX_PIPE} bytes; write a file first"
        )));
    }
    Ok(bytes)
}

/// Moves the place of an error in text.
fn moved(error: GraphError, place: impl Fn(usize, usize) -> (usize, usize)) -> GraphError {
    match error {
        GraphError::Text {
            line,
            column,
            source,
        } => {
            let (line, column) = place(line, column);
            GraphError::Text {
                line,
                column,
                source,
            }
        }
        other => other,
    }
}

fn configurable(module: &HloModule<'_>, task: Task) -> Vec<u32> {
    match task.kind().scope {
        // The file does not say which layouts are tuned, so they are those that usually are.
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
    Ok(MeasuredGraph {
        name,
        source,
        graph,
        node_splits,
        nodes,
        measurements: None,
    })
}

/// Returns the name of a serialized module and the form in which a client sends it.
fn serialized(module: &[u8]) -> (String, GraphSource) {
    let name = bytes_field(module, 1).map_or_else(String::new, |name| {
        String::from_utf8_lossy(name).into_owned()
    });
    (name, GraphSource::HloModule(module.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end() {
        let text = b"HloModule m";
        assert_eq!(read_pipe(text.as_slice()).unwrap(), text);
    }
}
