//! Draws the configurations of a graph whose file contains none.

use std::{
    fmt::{self, Display, Formatter},
    path::Path,
};

use clap::Args;
use fastrand::Rng;
use hlorank_graph::{ConfigurationError, Configurations, MeasuredGraph, Task};
use serde::Serialize;

use crate::cli::{
    configuration::{DrawnFusions, DrawnLayouts, check_drawable, draw_fusions, draw_layouts},
    error::CommandError,
    output::{counted, grouped},
};

/// Heading of `--help`.
pub(crate) const CONFIGURATIONS: &str = "Configurations";

/// Number of random configurations unless `--random` sets it.
const RANDOM: usize = 100;

/// The arguments that draw layouts or fusions.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = CONFIGURATIONS)]
pub(crate) struct Draw {
    /// Number of random layouts or fusions to draw and rank
    ///
    /// They are ranked instead of the configurations of the file [default: 100 if the file contains no configurations].
    /// Layouts are ranked with the compiler's default and at most 2,000 layouts that set one tensor of one node, and fusions
    /// with the program without fusion and those that fuse one node
    #[arg(long, value_name = "N", conflicts_with = "configs")]
    random: Option<usize>,
    /// Seed of the random configurations
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// What was drawn. Layout number 0 is the compiler's default, and fusion number 0 fuses nothing; single deviations follow,
/// then random configurations.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Drawn {
    #[serde(skip)]
    task: Task,
    /// Number of layouts that set one tensor of one node, or of fusions of one node.
    pub(crate) single_deviations: usize,
    /// Number of such configurations that the graph has.
    pub(crate) possible_single_deviations: usize,
    pub(crate) random: usize,
    pub(crate) seed: u64,
}

impl Draw {
    pub(crate) fn seed(self) -> u64 {
        self.seed
    }

    /// Draws layouts or fusions of a graph. Returns `None` if its file has configurations and `--random` is not given.
    pub(crate) fn configurations(
        self,
        path: &Path,
        graph: &MeasuredGraph,
    ) -> Result<Option<(Configurations, Drawn)>, CommandError> {
        if self.random.is_none() && graph.measurements.is_some() {
            return Ok(None);
        }
        check_drawable(graph, || path.display().to_string())?;
        let drawn = self.draw(graph);
        let drawn = drawn.map_err(|source| CommandError::configuration(path, source))?;
        Ok(Some(drawn))
    }

    /// Draws configurations of a graph that passed the check, so its task is layout or fusion.
    fn draw(self, graph: &MeasuredGraph) -> Result<(Configurations, Drawn), ConfigurationError> {
        let random = self.random.unwrap_or(RANDOM);
        // Equal arguments draw equal configurations, so `rank` and `explain` number them alike.
        let mut rng = Rng::with_seed(self.seed);
        if graph.graph.task() == Task::Fusion {
            let slots = graph.graph.configurable().len();
            let drawn = draw_fusions(slots, random, &mut rng)?;
            let report = Drawn::of_fusions(&drawn, self.seed);
            Ok((drawn.configurations, report))
        } else {
            let drawn = draw_layouts(&graph.nodes, random, &mut rng)?;
            let report = Drawn::of_layouts(&drawn, self.seed);
            Ok((drawn.configurations, report))
        }
    }
}

impl Drawn {
    fn of_fusions(drawn: &DrawnFusions, seed: u64) -> Self {
        Self {
            task: Task::Fusion,
            single_deviations: drawn.single,
            // A program has one such fusion per slot, and all of them are drawn.
            possible_single_deviations: drawn.single,
            random: drawn.random,
            seed,
        }
    }

    fn of_layouts(drawn: &DrawnLayouts, seed: u64) -> Self {
        Self {
            task: Task::Layout,
            single_deviations: drawn.deviations,
            possible_single_deviations: drawn.possible_deviations,
            random: drawn.random,
            seed,
        }
    }
}

impl Display for Drawn {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.task == Task::Fusion {
            return write!(
                formatter,
                "Drawn: the program without fusion (number 0), {} of one node, {} (seed {}).",
                counted(self.single_deviations, "fusion"),
                counted(self.random, "random fusion"),
                self.seed,
            );
        }
        write!(
            formatter,
            "Drawn: the compiler's default (number 0), {} of the {} layouts that set one tensor of one node, {} (seed {}).",
            grouped(self.single_deviations),
            grouped(self.possible_single_deviations),
            counted(self.random, "random layout"),
            self.seed,
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::cli::configuration::MAX_DEVIATIONS;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        _draw: Draw,
        #[arg(long)]
        _configs: Option<String>,
    }

    #[test]
    fn the_help_names_the_numbers() {
        let command = Arguments::command();
        let random = command
            .get_arguments()
            .find(|argument| argument.get_id() == "random")
            .unwrap();
        let help = random.get_long_help().unwrap().to_string();
        assert!(help.contains(&format!("[default: {RANDOM} ")), "{help}");
        assert!(
            help.contains(&format!("at most {} layouts", grouped(MAX_DEVIATIONS))),
            "{help}"
        );
    }
}
