//! What is ranked: the graphs of a file, each with configurations and their measured run times.

use std::path::Path;

use hlorank_graph::{Configurations, MeasuredGraph};

use super::{
    configuration, draw::Drawn, error::CommandError, input::NumberedGraph, progress::Progress,
    run_times::RunTimes, subject::Subject,
};

/// A graph of a file, and the configurations to rank if they are not those of the file.
pub(crate) struct Loaded {
    graph: NumberedGraph,
    others: Option<Configurations>,
    /// What was drawn, if these configurations were.
    drawn: Option<Drawn>,
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
            return Ok(vec![self.load_given(configs, progress)?]);
        }
        let graphs = self.selection.read(&self.graph, progress)?.graphs;
        graphs
            .into_iter()
            .map(|graph| self.load_drawn(graph))
            .collect()
    }

    fn load_given(&self, configs: &Path, progress: &Progress) -> Result<Loaded, CommandError> {
        // Layouts and fusions name nodes by number, so one list of them fits one graph only.
        let graph = self.selection.read_one(&self.graph, progress)?;
        Ok(Loaded {
            others: Some(configuration::read(configs, &graph.measured.graph)?),
            drawn: None,
            graph,
        })
    }

    /// Draws configurations of a graph if `--random` asks for them, or if its file has none.
    fn load_drawn(&self, graph: NumberedGraph) -> Result<Loaded, CommandError> {
        let drawn = self.draw.configurations(&self.graph, &graph.measured)?;
        let (others, drawn) = drawn.unzip();
        Ok(Loaded {
            graph,
            others,
            drawn,
        })
    }
}

impl Loaded {
    /// Returns what to rank; `None` if the file has no configurations of the graph.
    pub(crate) fn job(&self) -> Option<Job<'_>> {
        let NumberedGraph { module, measured } = &self.graph;
        let (configurations, run_times) = if let Some(others) = &self.others {
            // The run times of the file are those of its own configurations, in their order.
            (others, None)
        } else {
            let own = measured.measurements.as_ref()?;
            (&own.configurations, RunTimes::of(own))
        };
        Some(Job {
            module: *module,
            measured,
            configurations,
            run_times,
            drawn: self.drawn,
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
