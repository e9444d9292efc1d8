//! Reads graphs from files.

use std::path::Path;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use hlorank_graph::{FileError, FileKind, GraphFile, Limits, MeasuredGraph, Task};

use super::{error::CommandError, progress::Progress};

/// Help of an argument that is a file of graphs.
pub(crate) const GRAPH_FILE: &str = "File of graphs; `--help` lists the formats";

/// Long help of an argument that is a file of graphs.
pub(crate) const GRAPH_FILE_LONG: &str = "File of graphs: HLO text (also in a log), HloModuleProto, HloProto, TuningData, ModuleTuningData, or npz of TpuGraphs or of a feature set; plain, or compressed with gzip or zstd";

/// Help of an argument that is a file of graphs with run times.
pub(crate) const MEASURED_FILE: &str = "Files with measured run times";

/// Long help of an argument that is a file of graphs with run times.
pub(crate) const MEASURED_FILE_LONG: &str = "Files with measured run times: TuningData, ModuleTuningData, or npz of TpuGraphs or of a feature set";

/// The arguments that select graphs of a file.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Graph and model")]
pub(crate) struct Selection {
    /// Use only this graph of the file, from 0
    #[arg(long, value_name = "K")]
    module: Option<usize>,
    /// What is tuned
    ///
    /// It applies to a graph whose file contains none: layout, tile, fusion or feature-set.
    #[arg(long, value_name = "TASK", default_value = "layout", value_parser = task_parser(), hide_possible_values = true)]
    task: Task,
}

fn task_parser() -> impl clap::builder::TypedValueParser<Value = Task> {
    PossibleValuesParser::new(Task::ALL.map(Task::name))
        .try_map(|name| Task::from_name(&name).ok_or("the task is unknown"))
}

/// A graph and its position in the file.
#[derive(Debug)]
pub(crate) struct NumberedGraph {
    /// Position in the file, from 0.
    pub(crate) module: usize,
    /// The graph.
    pub(crate) measured: MeasuredGraph,
}

/// The selected graphs of a file.
#[derive(Debug)]
pub(crate) struct Input {
    /// Format of the file.
    pub(crate) kind: FileKind,
    /// The graphs; at least one.
    pub(crate) graphs: Vec<NumberedGraph>,
}

/// Limits of files. They are generous because users read their own files; the server has limits of its own.
pub(crate) const FILE_LIMITS: Limits = Limits {
    nodes: 1 << 24,
    edges: 1 << 26,
    configs: 1 << 24,
    config_entries: 1 << 31,
};

impl Selection {
    /// Reads the selected graphs of a file.
    pub(crate) fn read(&self, path: &Path, progress: &Progress) -> Result<Input, CommandError> {
        progress.show_file(path);
        let file = GraphFile::read(path, self.task, &FILE_LIMITS)?;
        let kind = file.kind;
        let graphs: Vec<_> = match self.module {
            // The number stays that of the file, because messages and reports refer to the file.
            Some(module) => vec![NumberedGraph {
                module,
                measured: file.into_graph(path, module)?,
            }],
            None => (0..).zip(file.graphs).map(NumberedGraph::from).collect(),
        };
        progress.add_graphs(graphs.len());
        Ok(Input { kind, graphs })
    }

    /// Reads the one selected graph of a file.
    pub(crate) fn read_one(
        &self,
        path: &Path,
        progress: &Progress,
    ) -> Result<NumberedGraph, CommandError> {
        let mut graphs = self.read(path, progress)?.graphs;
        let modules = graphs.len();
        let path = path.display().to_string();
        // A graph that leaves none behind was the only one.
        match graphs.pop() {
            Some(graph) if graphs.is_empty() => Ok(graph),
            Some(_) => Err(CommandError::SeveralModules { path, modules }),
            None => Err(FileError::NoSuchModule {
                path,
                module: 0,
                modules,
            }
            .into()),
        }
    }
}

impl From<(usize, MeasuredGraph)> for NumberedGraph {
    fn from((module, measured): (usize, MeasuredGraph)) -> Self {
        Self { module, measured }
    }
}
