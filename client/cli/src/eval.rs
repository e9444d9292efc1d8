//! `hlorank eval`: compares the rankings of a server with measured run times.

use std::{
    array,
    collections::BTreeSet,
    fmt::{self, Display},
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{
    Client, GraphHandle, RankRequest, Ranking,
    quality::{PairCounts, default_slowdown, top_slowdown},
};
use serde::{Serialize, Serializer};

use crate::{
    error::CommandError,
    input::{NumberedGraph, Selection},
    output::{Format, HEADING, Table, counted, decimals, grouped},
    progress::Progress,
    run_times::RunTimes,
    server::{ModelChoice, Server},
};

const EXAMPLES: &str = "\
Examples:
  hlorank eval measured/*.pb
  hlorank eval measured/*.pb --model layout-xla-cpu@3 --json";

const FILES: &str = "Files with measured run times";

const FILES_LONG: &str = "Files with measured run times: TuningData, ModuleTuningData, or npz of TpuGraphs or of a feature set";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Eval {
    #[arg(value_name = "FILE", required = true, help = FILES, long_help = FILES_LONG)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelChoice,
    /// What was measured: `HARDWARE, COMPILER VERSION, FLAG, ...`
    ///
    /// The server selects the model by it, and says how far to trust the ranking.
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    target: String,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    server: Server,
}

/// The quality of the rankings of several graphs.
#[derive(Debug, Default, Serialize)]
struct EvalReport {
    graphs: Vec<GraphQuality>,
    mean: Quality,
    /// Number of graphs left out because they have no run times.
    not_measured: usize,
}

/// The quality of the ranking of one graph.
#[derive(Debug, Serialize)]
struct GraphQuality {
    file: String,
    module: usize,
    name: String,
    kind: String,
    model: String,
    /// Number of measured configurations.
    configurations: usize,
    #[serde(flatten)]
    quality: Quality,
}

/// The value of each of [`METRICS`]; `None` if undefined.
#[derive(Clone, Copy, Debug, Default)]
struct Quality([Option<f64>; METRICS.len()]);

/// Expected is the tau that the server expected. Slowdowns are relative to the fastest configuration: 0.1 is 10 %.
const METRICS: [&str; 8] = [
    "kendall_tau",
    "expected_tau",
    "ordered_pair_accuracy",
    "top_1_slowdown",
    "top_5_slowdown",
    "top_10_slowdown",
    "top_100_slowdown",
    "default_slowdown",
];

impl Eval {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let client = self.server.connect().await?;
        let mut report = EvalReport::default();
        let progress = Progress::over(self.files.len());
        for file in &self.files {
            for graph in self.selection.read(file, &progress)?.graphs {
                match self.evaluate(&client, file, &graph).await? {
                    Some(quality) => report.graphs.push(quality),
                    None => report.not_measured += 1,
                }
                progress.advance();
            }
        }
        drop(progress);
        if report.graphs.is_empty() {
            let problem = "none of the files contains measured run times";
            return Err(CommandError::Input(problem.to_owned()));
        }
        report.mean = Quality::mean(&report.graphs);
        Ok(format.print(&report)?)
    }

    /// Ranks the configurations of a graph. Returns `None` for a graph without measured run times.
    async fn evaluate(
        &self,
        client: &Client,
        file: &Path,
        graph: &NumberedGraph,
    ) -> Result<Option<GraphQuality>, CommandError> {
        let measurements = graph.measured.measurements.as_ref();
        // Files without labels, such as the test files of TpuGraphs, have run times that are all 0.
        let times = measurements.and_then(RunTimes::new);
        let Some((measurements, times)) = measurements.zip(times) else {
            return Ok(None);
        };
        let handle = GraphHandle::from_measured(&graph.measured);
        // The scores in the order sent are matched with the run times, so the order of the ranking
        // is not needed.
        let request = RankRequest::new(&handle, &measurements.configurations)
            .model(self.model.model.clone())
            .target(&self.target)
            .top(1)
            .with_scores();
        let ranking = client.rank(&request).await;
        let ranking = ranking.map_err(|source| CommandError::graph(file, graph.module, source))?;
        Ok(Some(GraphQuality {
            file: file.display().to_string(),
            module: graph.module,
            name: graph.measured.name.clone(),
            kind: graph.measured.graph.task().to_string(),
            model: ranking.model.to_string(),
            configurations: times.len(),
            quality: Quality::new(&times, &ranking),
        }))
    }
}

impl Serialize for Quality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(METRICS.iter().zip(self.0))
    }
}

impl Quality {
    fn new(times: &RunTimes<'_>, ranking: &Ranking) -> Self {
        // All metrics refer to measured configurations only, and so do the ranks of `top`.
        let outcomes = times.outcomes(&ranking.scores);
        let confidence = ranking.confidence.as_ref();
        let pairs = PairCounts::new(&outcomes);
        let top = |top| top_slowdown(&outcomes, top);
        let default = times.default_outcome();
        Self([
            pairs.and_then(|pairs| pairs.kendall_tau()),
            confidence.and_then(|confidence| confidence.expected_tau),
            pairs.and_then(|pairs| pairs.ordered_pair_accuracy()),
            top(1),
            top(5),
            top(10),
            top(100),
            default.and_then(|time| default_slowdown(&outcomes, time)),
        ])
    }

    /// Returns the mean of each metric over the graphs for which it is defined.
    fn mean(graphs: &[GraphQuality]) -> Self {
        Self(array::from_fn(|metric| {
            // An undefined metric, such as tau of equal times, is left out: 0 would be the value of a
            // random ranking.
            let defined = graphs.iter().filter_map(|graph| graph.quality.0[metric]);
            let defined: Vec<f64> = defined.collect();
            #[expect(clippy::cast_precision_loss, reason = "a number of graphs")]
            (!defined.is_empty()).then(|| defined.iter().sum::<f64>() / defined.len() as f64)
        }))
    }

    fn cells(&self) -> impl Iterator<Item = String> {
        let values = METRICS.iter().zip(self.0);
        values.map(|(metric, value)| {
            if metric.ends_with("slowdown") {
                decimals(value.map(|slowdown| slowdown * 100.0), 1)
            } else {
                decimals(value, 3)
            }
        })
    }
}

const LEGEND: &str = "expected: the tau that the server expected; pairs: ordered pair accuracy; top K %: slowdown of the fastest of \
     the K best-ranked configurations over the fastest of all; default %: slowdown of the default configuration";

impl Display for EvalReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The default model depends on the task of a graph, so several models may have ranked.
        let models = self.graphs.iter().map(|graph| graph.model.as_str());
        let models: Vec<&str> = models.collect::<BTreeSet<_>>().into_iter().collect();
        let graphs = counted(self.graphs.len(), "graph");
        writeln!(formatter, "{}: {graphs}\n", models.join(", "))?;
        let mut table = Table::new(&[
            "graph",
            "kind",
            ">configurations",
            ">Kendall tau",
            ">expected",
            ">pairs",
            ">top 1 %",
            ">top 5 %",
            ">top 10 %",
            ">top 100 %",
            ">default %",
        ]);
        for graph in &self.graphs {
            let (name, kind) = (graph.name.clone(), graph.kind.clone());
            let first = [name, kind, grouped(graph.configurations)];
            table.row(first.into_iter().chain(graph.quality.cells()));
        }
        let first = ["mean", "", ""].map(str::to_owned);
        table.styled_row(HEADING, first.into_iter().chain(self.mean.cells()));
        writeln!(formatter, "{table}\n{LEGEND}")?;
        match self.not_measured {
            0 => Ok(()),
            graphs => writeln!(
                formatter,
                "left out: {} without run times",
                counted(graphs, "graph")
            ),
        }
    }
}
