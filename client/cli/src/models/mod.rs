//! `hlorank models`: lists and compares the models of a server, and changes which versions serve.

mod compare;
mod list;

use clap::{Args, Subcommand};
use hlorank_client::{AdminClient, Client, ClientError, ModelReference, ModelVersion, v1};

use self::{compare::Compare, list::ModelsReport};
use super::{
    error::CommandError,
    output::Format,
    replicas::{Connections, print_each},
    server::{Credentials, Server, address},
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    command: Option<ModelsAction>,
}

#[derive(Debug, Subcommand)]
enum ModelsAction {
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
    /// Address of the server's admin listener, or those of replicas
    ///
    /// It is the --admin-listen of the server. The listeners of replicas are separated by commas, or are all addresses of one name, and
    /// each of them is called.
    #[arg(long, value_name = "URL", env = "HLORANK_ADMIN_ENDPOINT", value_parser = address, value_delimiter = ',')]
    #[arg(default_value = "http://127.0.0.1:7072")]
    admin_endpoint: Vec<String>,
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
        _ => Err("a version must be NAME@VERSION, such as tile-iree-cpu@7".to_owned()),
    }
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        match self.command {
            None => {
                let list = async |client: &Client| client.list_models().await;
                let connections = self.server.connect_each().await?;
                print_models(format, connections, list).await
            }
            Some(ModelsAction::Compare(compare)) => compare.run(format).await,
            Some(ModelsAction::Reload { admin }) => admin.change(format, AdminClient::reload).await,
            Some(ModelsAction::Pin {
                admin,
                model: (name, version),
            }) => {
                let pin = async |client: &AdminClient| client.pin(&name, version).await;
                admin.change(format, pin).await
            }
            Some(ModelsAction::Unpin { admin, name }) => {
                let unpin = async |client: &AdminClient| client.unpin(&name).await;
                admin.change(format, unpin).await
            }
            Some(ModelsAction::Rollback { admin, name }) => {
                let rollback = async |client: &AdminClient| client.rollback(&name).await;
                admin.change(format, rollback).await
            }
            Some(ModelsAction::Canary {
                admin,
                model: (name, version),
                percent,
            }) => {
                let canary =
                    async |client: &AdminClient| client.set_canary(&name, version, percent).await;
                admin.change(format, canary).await
            }
        }
    }
}

impl Admin {
    /// Makes a change at every replica, and prints the models of each.
    async fn change(
        &self,
        format: Format,
        change: impl AsyncFn(&AdminClient) -> Result<Vec<v1::Model>, ClientError>,
    ) -> Result<(), CommandError> {
        let connection = self.credentials.connection()?;
        let connections = AdminClient::connect_each(&self.admin_endpoint, &connection).await?;
        print_models(format, connections, change).await
    }
}

async fn print_models<C>(
    format: Format,
    connections: Connections<C>,
    call: impl AsyncFn(&C) -> Result<Vec<v1::Model>, ClientError>,
) -> Result<(), CommandError> {
    let report = async |client: &C| Ok(ModelsReport::new(call(client).await?));
    print_each(format, connections, report).await
}
