//! The server that a command asks.

use clap::Args;
use hlorank_client::{Client, ClientError, Connection, ModelReference};

/// Where the server is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// Address of the server
    #[arg(long, value_name = "URL", env = "HLORANK_ENDPOINT", default_value = "http://127.0.0.1:7070")]
    endpoint: String,
}

/// Which model answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelChoice {
    /// The model to ask, and which of its versions: a number, `stable` or `canary`; left out, the default of the task
    #[arg(long, value_name = "NAME[@VERSION]")]
    pub(crate) model: Option<ModelReference>,
}

impl Server {
    pub(crate) async fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&self.endpoint, Connection::default()).await
    }
}
