//! `hlorank models`: lists and compares the models of a server, and changes which versions serve.

mod change;
mod compare;
mod live_quality;
mod report;

use clap::{Args, Subcommand};

use self::{change::Change, compare::Compare, report::ModelsReport};
use super::{error::CommandError, output::Format, server::Server};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say which of two versions ranks what clients measured better
    Compare(Compare),
    #[command(flatten)]
    Change(Change),
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let report = match self.command {
            Some(Command::Compare(compare)) => return compare.run(format).await,
            Some(Command::Change(change)) => ModelsReport::from(change.make().await?),
            None => ModelsReport::from(self.server.connect().await?.list_models().await?),
        };
        Ok(format.print(&report)?)
    }
}
