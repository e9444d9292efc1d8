//! `hlorank graph`: inspects graphs without a server.

mod features;
mod hash;
mod inspect;
mod nodes;

use clap::Subcommand;

use super::{error::CommandError, output::Format};

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Show the sizes of the graphs of a file, before and after pruning and segmentation
    Inspect(inspect::Inspect),
    /// Write the features, configurations and run times of a graph as npz
    Features(features::Features),
    /// Print the hashes of the graphs of a file
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
