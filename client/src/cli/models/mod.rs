//! `hlorank models`: lists the models of a server, and changes which versions serve.

mod change;
mod report;

use clap::Args;

use self::{change::Change, report::ModelsReport};
use super::{error::CommandError, output::Format, server::Server};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    change: Option<Change>,
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let models = match self.change {
            Some(change) => change.make().await?,
            None => self.server.connect().await?.list_models().await?,
        };
        Ok(format.print(&ModelsReport::from(models))?)
    }
}
