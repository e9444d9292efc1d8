use std::{
    collections::BTreeSet,
    fmt::{self, Display},
    path::Path,
};

use hlorank_client::{
    Ranking,
    quality::{PairCounts, default_slowdown, top_slowdown},
};
use serde::Serialize;

use crate::cli::{
    input::NumberedGraph,
    output::{Align, Table, counted, grouped, or_dash},
    run_times::RunTimes,
    style::HEADING,
};

/// The quality of the rankings of several graphs.
#[derive(Debug, Default, Serialize)]
pub(super) struct EvalReport {
    pub(super) graphs: Vec<GraphQuality>,
    pub(super) mean: Quality,
    /// Number of graphs left out because they have no run times.
    pub(super) not_measured: usize,
}

/// The quality of the ranking of one graph.
#[derive(Debug, Serialize)]
pub(super) struct GraphQuality {
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

/// The quality metrics; `None` if undefined. Slowdowns are relative to the fastest configuration: 0.1 is 10 %.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Quality {
    kendall_tau: Option<f64>,
    /// What the server expected it to be.
    expected_tau: Option<f64>,
    ordered_pair_accuracy: Option<f64>,
    top_1_slowdown: Option<f64>,
    top_5_slowdown: Option<f64>,
    top_10_slowdown: Option<f64>,
    top_100_slowdown: Option<f64>,
    default_slowdown: Option<f64>,
}

impl GraphQuality {
    pub(super) fn of(
        file: &Path,
        graph: &NumberedGraph,
        times: &RunTimes<'_>,
        ranking: &Ranking,
    ) -> Self {
        Self {
            file: file.display().to_string(),
            module: graph.module,
            name: graph.measured.name.clone(),
            kind: graph.measured.graph.task().to_string(),
            model: ranking.model.to_string(),
            configurations: times.len(),
            quality: Quality::of(times, ranking),
        }
    }
}

impl Quality {
    fn of(times: &RunTimes<'_>, ranking: &Ranking) -> Self {
        // All metrics refer to measured configurations only, and so do the ranks of `top`.
        let outcomes = times.outcomes(&ranking.scores);
        let confidence = ranking.confidence.as_ref();
        let pairs = PairCounts::of(&outcomes);
        let top = |top| top_slowdown(&outcomes, top);
        let default = times.default_outcome();
        Self {
            kendall_tau: pairs.and_then(|pairs| pairs.kendall_tau()),
            expected_tau: confidence.and_then(|confidence| confidence.expected_tau),
            ordered_pair_accuracy: pairs.and_then(|pairs| pairs.ordered_pair_accuracy()),
            top_1_slowdown: top(1),
            top_5_slowdown: top(5),
            top_10_slowdown: top(10),
            top_100_slowdown: top(100),
            default_slowdown: default.and_then(|time| default_slowdown(&outcomes, time)),
        }
    }

    /// Returns the mean of each metric over the graphs for which it is defined.
    fn mean(graphs: &[GraphQuality]) -> Self {
        let mean = |metric: fn(&Self) -> Option<f64>| mean_of(graphs, metric);
        Self {
            kendall_tau: mean(|quality| quality.kendall_tau),
            expected_tau: mean(|quality| quality.expected_tau),
            ordered_pair_accuracy: mean(|quality| quality.ordered_pair_accuracy),
            top_1_slowdown: mean(|quality| quality.top_1_slowdown),
            top_5_slowdown: mean(|quality| quality.top_5_slowdown),
            top_10_slowdown: mean(|quality| quality.top_10_slowdown),
            top_100_slowdown: mean(|quality| quality.top_100_slowdown),
            default_slowdown: mean(|quality| quality.default_slowdown),
        }
    }

    fn cells(&self) -> [String; 8] {
        let percent = |slowdown: Option<f64>| or_dash(slowdown.map(|slowdown| slowdown * 100.0), 1);
        [
            or_dash(self.kendall_tau, 3),
            or_dash(self.expected_tau, 3),
            or_dash(self.ordered_pair_accuracy, 3),
            percent(self.top_1_slowdown),
            percent(self.top_5_slowdown),
            percent(self.top_10_slowdown),
            percent(self.top_100_slowdown),
            percent(self.default_slowdown),
        ]
    }
}

impl EvalReport {
    /// Computes the mean.
    pub(super) fn with_mean(self) -> Self {
        Self {
            mean: Quality::mean(&self.graphs),
            ..self
        }
    }

    fn models(&self) -> String {
        // The default model depends on the task of a graph, so several models may have ranked.
        let models = self.graphs.iter().map(|graph| graph.model.as_str());
        let models: BTreeSet<&str> = models.collect();
        models.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn mean_of(graphs: &[GraphQuality], metric: fn(&Quality) -> Option<f64>) -> Option<f64> {
    // An undefined metric, such as tau of equal times, is left out: 0 would be the value of a
    // random ranking.
    let defined = graphs.iter().filter_map(|graph| metric(&graph.quality));
    let defined: Vec<f64> = defined.collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of graphs")]
    (!defined.is_empty()).then(|| defined.iter().sum::<f64>() / defined.len() as f64)
}

const COLUMNS: [(&str, Align); 11] = [
    ("graph", Align::Left),
    ("kind", Align::Left),
    ("configurations", Align::Right),
    ("Kendall tau", Align::Right),
    ("expected", Align::Right),
    ("pairs", Align::Right),
    ("top 1 %", Align::Right),
    ("top 5 %", Align::Right),
    ("top 10 %", Align::Right),
    ("top 100 %", Align::Right),
    ("default %", Align::Right),
];

const LEGEND: &str = "expected: the tau that the server expected; pairs: ordered pair accuracy; top K %: slowdown of the fastest of \
     the K best-ranked configurations over the fastest of all; default %: slowdown of the default configuration";

impl Display for EvalReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let graphs = counted(self.graphs.len(), "graph");
        writeln!(formatter, "{}: {graphs}\n", self.models())?;
        writeln!(formatter, "{}\n{LEGEND}", self.table())?;
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

impl EvalReport {
    fn table(&self) -> Table {
        let mut table = Table::new(&COLUMNS);
        for graph in &self.graphs {
            let first = [
                graph.name.clone(),
                graph.kind.clone(),
                grouped(graph.configurations),
            ];
            table.row(first.into_iter().chain(graph.quality.cells()));
        }
        let first = ["mean", "", ""].map(str::to_owned);
        table.styled_row(HEADING, first.into_iter().chain(self.mean.cells()));
        table
    }
}
