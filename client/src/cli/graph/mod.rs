//! `hlorank graph`: what can be told of graphs without a server.

mod features;
mod hash;
mod inspect;
mod nodes;

use clap::Subcommand;

use super::{error::CommandError, output::Format};

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Show the graphs of a file and what pruning and cutting leave of them
    Inspect(inspect::Inspect),
    /// Write the features, configurations and run times of a graph as npz
    Features(features::Features),
    /// Print the graph hashes of a file
    Hash(hash::Hash),
}

impl GraphCommand {
    pub(crate) fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Inspect(inspect) => inspect.run(format),
            Self::Features(features) => features.run(format),
            Self::Hash(hash) => hash.run(format),
        }
    }
}
