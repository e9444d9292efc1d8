//! `hlorank models`: lists and compares the models of a server, and changes which versions serve.

mod compare;
mod list;

use clap::{Args, Subcommand};
use hlorank_client::{AdminClient, ModelReference, ModelVersion};

use self::{compare::Compare, list::ModelsReport};
use super::{
    error::CommandError,
    output::Format,
    server::{Credentials, Server, address},
};

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
    /// Look for new versions immediately, and retry rejected ones
    Reload {
        #[command(flatten)]
        admin: Admin,
    },
    /// Pin a version: it serves even if newer ones exist, also after a restart
    Pin {
        /// Version to serve
        #[arg(value_name = "NAME@VERSION", value_parser = numbered)]
        model: (String, u64),
        #[command(flatten)]
        admin: Admin,
    },
    /// Remove the pin and the canary, so that the newest valid version serves every graph
    Unpin {
        /// Name of the model
        name: String,
        #[command(flatten)]
        admin: Admin,
    },
    /// Pin the version that served before, or else the next older one
    Rollback {
        /// Name of the model
        name: String,
        #[command(flatten)]
        admin: Admin,
    },
    /// Pin the stable version, and make another version serve a share of the graphs
    Canary {
        /// Version of the canary; pin it afterwards to make it serve every graph
        #[arg(value_name = "NAME@VERSION", value_parser = numbered)]
        model: (String, u64),
        /// Percentage of the graphs that the canary serves
        ///
        /// 1 to 100; 0 ends the canary.
        #[arg(long)]
        percent: u32,
        #[command(flatten)]
        admin: Admin,
    },
}

/// The arguments of admin calls.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
struct Admin {
    /// Address of the server's admin listener
    ///
    /// It is the --admin-listen of the server.
    #[arg(long, value_name = "URL", env = "HLORANK_ADMIN_ENDPOINT", value_parser = address)]
    #[arg(default_value = "http://127.0.0.1:7072")]
    admin_endpoint: String,
    #[command(flatten)]
    credentials: Credentials,
}

/// Reads `NAME@VERSION`.
fn numbered(text: &str) -> Result<(String, u64), String> {
    match text.parse::<ModelReference>() {
        // `stable` and `canary` name what a change moves, so a change takes a number only.
        Ok(ModelReference {
            name,
            version: ModelVersion::Number(version),
        }) => Ok((name, version)),
        _ => Err("a version must be NAME@VERSION, such as tile-iree-cpu@4".to_owned()),
    }
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let models = match self.command {
            None => self.server.connect().await?.list_models().await?,
            Some(Command::Compare(compare)) => return compare.run(format).await,
            Some(Command::Reload { admin }) => admin.connect().await?.reload().await?,
            Some(Command::Pin {
                admin,
                model: (name, version),
            }) => admin.connect().await?.pin(&name, version).await?,
            Some(Command::Unpin { admin, name }) => admin.connect().await?.unpin(&name).await?,
            Some(Command::Rollback { admin, name }) => {
                admin.connect().await?.rollback(&name).await?
            }
            Some(Command::Canary {
                admin,
                model: (name, version),
                percent,
            }) => {
                let admin = admin.connect().await?;
                admin.set_canary(&name, version, percent).await?
            }
        };
        Ok(format.print(&ModelsReport::new(models))?)
    }
}

impl Admin {
    async fn connect(&self) -> Result<AdminClient, CommandError> {
        Ok(AdminClient::connect(&self.admin_endpoint, self.credentials.connection()?).await?)
    }
}
