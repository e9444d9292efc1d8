//! `hlorank measurements`: lists and deletes what a server keeps, and takes it to files that training reads, and back.

mod delete;
mod export;
mod exported_file;
mod import;
mod list;
mod report;

use clap::Subcommand;

use self::{delete::Delete, export::Export, import::Import, list::List};
use super::{error::CommandError, output::Format};

#[derive(Debug, Subcommand)]
pub(crate) enum MeasurementsCommand {
    /// Write the measurements that a server keeps to files that training reads
    Export(Export),
    /// Report the measurements of files to a server
    Import(Import),
    /// Show how many measurements of each graph a server keeps, and who reported them
    List(List),
    /// Delete measurements that a server keeps
    Delete(Delete),
}

impl MeasurementsCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self {
            Self::Export(export) => export.run(format).await,
            Self::Import(import) => import.run(format).await,
            Self::List(list) => list.run(format).await,
            Self::Delete(delete) => delete.run(format).await,
        }
    }
}
