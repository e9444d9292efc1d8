//! `hlorank measurements`: takes what a server keeps to files that training reads, and back.

mod export;
mod exported_file;
mod import;

use clap::Subcommand;

use self::{export::Export, import::Import};
use super::{error::CommandError, output::Format};

#[derive(Debug, Subcommand)]
pub(crate) enum MeasurementsCommand {
    /// Write the measurements that a server keeps to files that training reads
    Export(Export),
    /// Report the measurements of files to a server
    Import(Import),
}

impl MeasurementsCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Export(export) => export.run(format).await,
            Self::Import(import) => import.run(format).await,
        }
    }
}
