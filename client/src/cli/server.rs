//! The server that a command calls.

use std::time::Duration;

use clap::Args;
use hlorank_arguments::positive_duration;
use hlorank_client::{Client, Connection, ModelReference};
use tonic::transport::Uri;

use super::{credentials::Credentials, error::CommandError};

/// The arguments for calls to a server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Address of the server, or of replicas
    ///
    /// Replicas that share the graphs are separated by commas.
    #[arg(long, value_name = "URL", env = "HLORANK_ENDPOINT", value_parser = address, value_delimiter = ',')]
    #[arg(default_value = "http://127.0.0.1:7070")]
    endpoint: Vec<String>,
    /// Maximum time of a call
    ///
    /// In seconds, or with a unit, such as 500ms or 2m. It includes retries.
    #[arg(long, value_name = "TIME", value_parser = positive_duration, default_value = "30")]
    timeout: Duration,
    #[command(flatten)]
    credentials: Credentials,
}

/// The argument that selects a model.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Graph and model")]
pub(crate) struct ModelChoice {
    /// Model to use
    ///
    /// VERSION is a number, `stable` or `canary` [default: the default model of the task]
    #[arg(long, value_name = "NAME[@VERSION]")]
    pub(crate) model: Option<ModelReference>,
}

/// Checks an address, and returns it unchanged.
pub(crate) fn address(text: &str) -> Result<String, String> {
    // The client checks the scheme later. Here, a typing error is reported with its flag.
    match text.parse::<Uri>() {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!(
            "expected http://HOST:PORT or https://HOST:PORT: {error}"
        )),
    }
}

impl Server {
    pub(crate) async fn connect(&self) -> Result<Client, CommandError> {
        Ok(Client::connect_replicas(&self.endpoint, self.connection()?).await?)
    }

    /// Opens another connection, whose calls report every error instead of retrying.
    pub(crate) async fn connect_without_retries(&self) -> Result<Client, CommandError> {
        // A retry would hide rejected calls from `bench`, and add its delay to their latency.
        let connection = Connection {
            retries: 0,
            ..self.connection()?
        };
        Ok(Client::connect_replicas(&self.endpoint, connection).await?)
    }

    fn connection(&self) -> Result<Connection, CommandError> {
        let timeout = Some(self.timeout);
        Ok(Connection {
            timeout,
            ..self.credentials.connection()?
        })
    }
}
