//! The server that a command asks.

use clap::Args;
use hlorank_client::{Client, ClientError, Connection, ModelReference};
use tonic::transport::Uri;

/// Where the server is.
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// Address of the server
    #[arg(long, value_name = "URL", env = "HLORANK_ENDPOINT", value_parser = address)]
    #[arg(default_value = "http://127.0.0.1:7070")]
    endpoint: String,
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
    pub(crate) async fn connect(&self) -> Result<Client, ClientError> {
        Client::connect(&self.endpoint, Connection::default()).await
    }
}
