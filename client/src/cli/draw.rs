//! Draws the configurations of a graph whose file contains none.

use std::{
    fmt::{self, Display, Formatter},
    path::Path,
};

use clap::Args;
use fastrand::Rng;
use hlorank_graph::{Configurations, MeasuredGraph, Task};
use serde::Serialize;

use crate::cli::{
    configuration::{DrawnLayouts, draw_layouts},
    error::CommandError,
    output::{counted, grouped},
};

/// Heading of `--help`.
pub(crate) const CONFIGURATIONS: &str = "Configurations";

/// Number of random layouts unless `--random` sets it.
const RANDOM: usize = 100;

/// The arguments that draw layouts.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = CONFIGURATIONS)]
pub(crate) struct Draw {
    /// Number of random layouts to draw and rank
    ///
    /// They are ranked instead of the configurations of the file [default: 100 if the file contains no configurations].
    /// The compiler's default and at most 2,000 layouts that set one tensor of one node are ranked with them
    #[arg(long, value_name = "N", conflicts_with = "configs")]
    random: Option<usize>,
    /// Seed of the random layouts
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

/// What was drawn. Layout number 0 is the compiler's default, single deviations follow, then random layouts.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Drawn {
    /// Number of layouts that set one tensor of one node.
    pub(crate) single_deviations: usize,
    /// Number of such layouts that the graph has.
    pub(crate) possible_single_deviations: usize,
    pub(crate) random: usize,
    pub(crate) seed: u64,
}

impl Draw {
    pub(crate) fn seed(self) -> u64 {
        self.seed
    }

    /// Draws layouts of a graph. Returns `None` if its file has configurations and `--random` is not given.
    pub(crate) fn layouts(
        self,
        path: &Path,
        graph: &MeasuredGraph,
    ) -> Result<Option<(Configurations, Drawn)>, CommandError> {
        if self.random.is_none() && graph.measurements.is_some() {
            return Ok(None);
        }
        let name = || path.display().to_string();
        check(graph, name)?;
        let random = self.random.unwrap_or(RANDOM);
        let drawn = draw_layouts(&graph.nodes, random, &mut Rng::with_seed(self.seed));
        let drawn = drawn.map_err(|source| CommandError::Configuration { path: name(), source })?;
        let report = Drawn::of(&drawn, self.seed);
        Ok(Some((drawn.configurations, report)))
    }
}

/// Checks that layouts of the graph can be drawn.
fn check(graph: &MeasuredGraph, path: impl Fn() -> String) -> Result<(), CommandError> {
    match graph.graph.task() {
        Task::Tile => Err(CommandError::NoTiles { path: path() }),
        Task::Layout if graph.graph.configurable().is_empty() => {
            Err(CommandError::NothingConfigurable { path: path() })
        }
        Task::Layout if graph.nodes.is_empty() => Err(CommandError::NothingToDraw { path: path() }),
        Task::Layout => Ok(()),
    }
}

impl Drawn {
    fn of(drawn: &DrawnLayouts, seed: u64) -> Self {
        Self {
            single_deviations: drawn.deviations,
            possible_single_deviations: drawn.possible_deviations,
            random: drawn.random,
            seed,
        }
    }
}

impl Display for Drawn {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
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
        let random = command.get_arguments().find(|argument| argument.get_id() == "random").unwrap();
        let help = random.get_long_help().unwrap().to_string();
        assert!(help.contains(&format!("[default: {RANDOM} ")), "{help}");
        assert!(help.contains(&format!("at most {} layouts", grouped(MAX_DEVIATIONS))), "{help}");
    }
}
