//! The server that a command asks.

use std::time::Duration;

use clap::{Args, value_parser};
use hlorank_client::{Client, Connection, ModelReference};
use tonic::transport::Uri;

use super::{credentials::Credentials, error::CommandError};

/// Where the server is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// Address of the server; with commas between, of replicas that share the graphs
    #[arg(long, value_name = "URL", env = "HLORANK_ENDPOINT", value_parser = address, value_delimiter = ',')]
    #[arg(default_value = "http://127.0.0.1:7070")]
    endpoint: Vec<String>,
    /// How long a call may take, retries included
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..), default_value_t = 30)]
    timeout: u64,
    #[command(flatten)]
    credentials: Credentials,
}

/// Which model answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelChoice {
    /// The model to ask, and which of its versions: a number, `stable` or `canary`; left out, the default of the task
    #[arg(long, value_name = "NAME[@VERSION]")]
    pub(crate) model: Option<ModelReference>,
}

/// An address, checked, as it was written.
pub(crate) fn address(text: &str) -> Result<String, String> {
    text.parse::<Uri>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl Server {
    pub(crate) async fn connect(&self) -> Result<Client, CommandError> {
        Ok(Client::connect_replicas(&self.endpoint, self.connection()?).await?)
    }

    /// A connection of its own, whose calls show every refusal.
    pub(crate) async fn connect_without_retries(&self) -> Result<Client, CommandError> {
        let connection = Connection { retries: 0, ..self.connection()? };
        Ok(Client::connect_replicas(&self.endpoint, connection).await?)
    }

    fn connection(&self) -> Result<Connection, CommandError> {
        let timeout = Some(Duration::from_secs(self.timeout));
        Ok(Connection { timeout, ..self.credentials.connection()? })
    }
}
