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
    /// List what is in the model folder and never loaded, too
    #[arg(long)]
    all: bool,
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
            None => {
                let folder = self.server.connect().await?.list_model_folder().await?;
                // The server always sends the list. `None` leaves it out of the text and of JSON.
                let ignored = self.all.then_some(folder.ignored);
                ModelsReport::from(folder.models).with_ignored(ignored)
            }
        };
        Ok(format.print(&report)?)
    }
}
