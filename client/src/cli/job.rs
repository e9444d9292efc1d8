//! What is ranked: the graphs of a file, each with configurations and their measured run times.

use hlorank_graph::{Configurations, MeasuredGraph};

use super::{
    configuration, draw::Drawn, error::CommandError, input::NumberedGraph, progress::Progress,
    run_times::RunTimes, subject::Subject,
};

/// A graph of a file, and the configurations to rank if they are not those of the file.
pub(crate) struct Loaded {
    graph: NumberedGraph,
    others: Option<(Configurations, Option<Drawn>)>,
}

/// A graph, the configurations to rank, and their measured run times.
pub(crate) struct Job<'a> {
    pub(crate) module: usize,
    pub(crate) measured: &'a MeasuredGraph,
    pub(crate) configurations: &'a Configurations,
    pub(crate) run_times: Option<RunTimes<'a>>,
    /// What was drawn, if the configurations were.
    pub(crate) drawn: Option<Drawn>,
}

impl Subject {
    /// Reads the graphs, with the configurations of `--configs`, those of the file, or drawn ones.
    pub(crate) fn load(&self, progress: &Progress) -> Result<Vec<Loaded>, CommandError> {
        if let Some(configs) = &self.configs {
            let graph = self.selection.read_one(&self.graph, progress)?;
            let given = configuration::read(configs, &graph.measured.graph)?;
            return Ok(vec![Loaded {
                graph,
                others: Some((given, None)),
            }]);
        }
        let load = |graph: NumberedGraph| {
            let drawn = self.draw.configurations(&self.graph, &graph.measured)?;
            let others = drawn.map(|(configurations, drawn)| (configurations, Some(drawn)));
            Ok(Loaded { graph, others })
        };
        self.selection
            .read(&self.graph, progress)?
            .graphs
            .into_iter()
            .map(load)
            .collect()
    }
}

impl Loaded {
    /// Returns what to rank; `None` if the file has no configurations of the graph.
    pub(crate) fn job(&self) -> Option<Job<'_>> {
        let NumberedGraph { module, measured } = &self.graph;
        let job = |configurations, run_times, drawn| Job {
            module: *module,
            measured,
            configurations,
            run_times,
            drawn,
        };
        if let Some((configurations, drawn)) = &self.others {
            return Some(job(configurations, None, *drawn));
        }
        let measurements = measured.measurements.as_ref()?;
        Some(job(
            &measurements.configurations,
            RunTimes::of(measurements),
            None,
        ))
    }
}

impl Job<'_> {
    /// Returns the number of a configuration in the file.
    pub(crate) fn number(&self, config: usize) -> usize {
        self.run_times
            .as_ref()
            .map_or(config, |times| times.number(config))
    }

    /// Returns the measured run time of a configuration in nanoseconds.
    pub(crate) fn run_time(&self, config: usize) -> Option<i64> {
        self.run_times.as_ref()?.measured(config)
    }
}
