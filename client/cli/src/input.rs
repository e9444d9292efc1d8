//! What is read from files: graphs, and the configurations to rank.

use std::path::{Path, PathBuf};

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use hlorank_graph::{Configurations, FileKind, GraphFile, MeasuredGraph, Task};

use crate::{
    configuration::{FILE_LIMITS, Json, read_text},
    error::CommandError,
    measured::{Measurements, ReadMeasurements},
    progress::Progress,
    run_times::RunTimes,
    server::{ModelChoice, Server},
};

/// Help of an argument that is a file of graphs.
pub(crate) const GRAPH_FILE: &str =
    "File of graphs, or - for standard input; `--help` lists the formats";

/// Long help of an argument that is a file of graphs.
pub(crate) const GRAPH_FILE_LONG: &str = "File of graphs: HLO text (also in a log), HloModuleProto, HloProto, TuningData, ModuleTuningData, or npz of TpuGraphs or of a feature set; plain, or compressed with gzip or zstd; - for standard input";

const CONFIGS_LONG: &str = r#"JSON list of configurations instead of those of the file: layouts
{"nodes": [{"node": 17, "tensors": [{"minor_to_major": [1, 0]}]}]}
or tiles
{"kernel_bounds": [3, 1], "output_bounds": [8, 128], "input_bounds": []}
or fusions
{"fused_nodes": [17, 18]}
or columns of a feature set, a list for every node
{"node_features": [[1.5, 2.0], [3.0, 4.0]]}"#;

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

/// A graph, its configurations, what was measured of them, and the server and the model to ask.
#[derive(Debug, Args)]
#[command(next_help_heading = "Graph and model")]
pub(crate) struct Subject {
    #[arg(long, value_name = "FILE", help = GRAPH_FILE, long_help = GRAPH_FILE_LONG)]
    pub(crate) graph: PathBuf,
    /// JSON list of configurations; `--help` has the form
    #[arg(long, value_name = "FILE", long_help = CONFIGS_LONG)]
    configs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ModelChoice,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pub(crate) measurements: Measurements,
    #[command(flatten)]
    pub(crate) server: Server,
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

/// A graph of a file, and the configurations to rank if they are not those of the file.
pub(crate) struct LoadedGraph {
    graph: NumberedGraph,
    given: Option<Configurations>,
}

/// A graph, the configurations to rank, and their measured run times.
pub(crate) struct Job<'a> {
    pub(crate) module: usize,
    pub(crate) measured: &'a MeasuredGraph,
    pub(crate) configurations: &'a Configurations,
    pub(crate) run_times: Option<RunTimes<'a>>,
    /// What the server learns from.
    pub(crate) learned: Option<ReadMeasurements>,
}

fn task_parser() -> impl TypedValueParser<Value = Task> {
    PossibleValuesParser::new(Task::ALL.map(Task::name))
        .try_map(|name| Task::from_name(&name).ok_or("the task is unknown"))
}

impl Selection {
    /// Reads the selected graphs of a file.
    pub(crate) fn read(&self, path: &Path, progress: &Progress) -> Result<Input, CommandError> {
        progress.show_file(path);
        let file = GraphFile::read(path, self.task, &FILE_LIMITS)?;
        let kind = file.kind;
        let numbered = |(module, measured)| NumberedGraph { module, measured };
        let graphs: Vec<_> = match self.module {
            // The number stays that of the file, because messages and reports refer to the file.
            Some(module) => vec![numbered((module, file.into_graph(path, module)?))],
            None => (0..).zip(file.graphs).map(numbered).collect(),
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
        let graphs = self.read(path, progress)?.graphs;
        let one = <[NumberedGraph; 1]>::try_from(graphs);
        one.map(|[graph]| graph).map_err(|graphs| {
            let (modules, last) = (graphs.len(), graphs.len().saturating_sub(1));
            let problem =
                format_args!("contains {modules} graphs; select one with --module (0 to {last})");
            CommandError::input(path.display(), problem)
        })
    }
}

impl Subject {
    /// Reads the graphs, with the configurations of `--configs` or those of the file.
    pub(crate) fn load(&self, progress: &Progress) -> Result<Vec<LoadedGraph>, CommandError> {
        if self.configs.is_some() {
            return Ok(vec![self.load_one(progress)?]);
        }
        let graphs = self.selection.read(&self.graph, progress)?.graphs;
        let loaded = |graph| LoadedGraph { graph, given: None };
        Ok(graphs.into_iter().map(loaded).collect())
    }

    /// Reads one graph. Configurations name nodes by number, so one list of them fits one graph only.
    pub(crate) fn load_one(&self, progress: &Progress) -> Result<LoadedGraph, CommandError> {
        let graph = self.selection.read_one(&self.graph, progress)?;
        let given = match self.configs.as_deref() {
            Some(path) => {
                let text = read_text(path)?;
                Some(Json::Text(&text).read(path, &graph.measured.graph)?)
            }
            None => None,
        };
        Ok(LoadedGraph { graph, given })
    }

    /// Returns what to rank.
    pub(crate) fn job<'a>(&self, loaded: &'a LoadedGraph) -> Result<Job<'a>, CommandError> {
        let NumberedGraph { module, measured } = &loaded.graph;
        let (configurations, run_times) = match (&loaded.given, &measured.measurements) {
            // The run times of the file are those of its own configurations, in their order.
            (Some(given), _) => (given, None),
            (None, Some(own)) => (&own.configurations, RunTimes::new(own)),
            (None, None) => {
                let or = match measured.graph.task() {
                    Task::Fusion => {
                        ", or let `hlorank-tune xla PROGRAM --fusion` choose and measure fusions"
                    }
                    Task::Layout => {
                        ", or let `hlorank-tune xla PROGRAM` choose and measure layouts"
                    }
                    Task::Tile | Task::FeatureSet => "",
                };
                let problem = format_args!(
                    "module {module} comes without configurations; pass some with --configs FILE, whose form `--help` shows{or}"
                );
                return Err(CommandError::input(self.graph.display(), problem));
            }
        };
        Ok(Job {
            module: *module,
            measured,
            configurations,
            run_times,
            learned: self.measurements.read(&measured.graph)?,
        })
    }
}

impl Job<'_> {
    /// Returns the number of a configuration in the file.
    pub(crate) fn number(&self, config: usize) -> usize {
        // Runs of the file may be skipped, so a number can be higher than the position.
        self.run_times
            .as_ref()
            .map_or(config, |times| times.number(config))
    }

    /// Returns the measured run time of a configuration in nanoseconds.
    pub(crate) fn run_time(&self, config: usize) -> Option<i64> {
        self.run_times.as_ref()?.measured(config)
    }
}
