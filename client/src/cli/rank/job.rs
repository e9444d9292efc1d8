use hlorank_graph::{Configurations, MeasuredGraph};

use crate::cli::{draw::Drawn, input::NumberedGraph, run_times::RunTimes};

/// A graph, the configurations to rank, and their measured run times.
pub(super) struct Job<'a> {
    pub(super) module: usize,
    pub(super) measured: &'a MeasuredGraph,
    pub(super) configurations: &'a Configurations,
    pub(super) run_times: Option<RunTimes<'a>>,
    /// What was drawn, if the configurations were.
    pub(super) drawn: Option<Drawn>,
}

impl<'a> Job<'a> {
    /// Returns a graph with the configurations of `--configs`.
    pub(super) fn given(graph: &'a NumberedGraph, configurations: &'a Configurations) -> Self {
        Self { module: graph.module, measured: &graph.measured, configurations, run_times: None, drawn: None }
    }

    /// Returns a graph with drawn configurations.
    pub(super) fn drawn(graph: &'a NumberedGraph, configurations: &'a Configurations, drawn: Drawn) -> Self {
        Self { drawn: Some(drawn), ..Self::given(graph, configurations) }
    }

    /// Returns a graph with the configurations of its file, or `None` if the file has none for it.
    pub(super) fn of_file(graph: &'a NumberedGraph) -> Option<Self> {
        let measurements = graph.measured.measurements.as_ref()?;
        Some(Self {
            module: graph.module,
            measured: &graph.measured,
            configurations: &measurements.configurations,
            run_times: RunTimes::of(measurements),
            drawn: None,
        })
    }
}
