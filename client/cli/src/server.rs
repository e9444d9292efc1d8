//! The server that a command calls, and how: certificates, tokens, deadlines.

use std::{env, path::PathBuf, time::Duration};

use clap::Args;
use hlorank_arguments::positive_duration;
use hlorank_client::{
    Address, Client, Connection, Identity, ModelReference, ParseAddressError, Token,
};

use super::{configuration::read_text, error::CommandError, replicas::Connections};

/// The arguments for calls to a server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Address of the server, or of replicas
    ///
    /// HOST:PORT, or https://HOST:PORT with TLS. Replicas that share the graphs are separated by commas. Commands that list or change
    /// what a server keeps call each of them, and each address of a name that has several.
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

/// The arguments for TLS and tokens.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Credentials {
    /// Certificate authorities to trust at https://, in PEM
    ///
    /// [default: those of the system]
    #[arg(long, value_name = "FILE", env = "HLORANK_CA")]
    ca: Option<PathBuf>,
    /// Certificate and its key for servers that require one, in PEM
    ///
    /// They are for mutual TLS.
    #[arg(long, value_name = "CERTIFICATE,KEY", env = "HLORANK_CERTIFICATE", value_parser = two_files)]
    certificate: Option<(PathBuf, PathBuf)>,
    /// File with the token to send with every call
    ///
    /// [default: the token in `HLORANK_TOKEN`, if set]
    #[arg(long, value_name = "FILE", env = "HLORANK_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The environment variable with the token itself. There is no flag for it, because process lists show flags.
const TOKEN: &str = "HLORANK_TOKEN";

/// Checks an address, and returns it unchanged.
pub(crate) fn address(text: &str) -> Result<String, ParseAddressError> {
    text.parse::<Address>().map(|_| text.to_owned())
}

fn two_files(text: &str) -> Result<(PathBuf, PathBuf), &'static str> {
    let files = text
        .split_once(',')
        .map(|(one, two)| (one.into(), two.into()));
    files.ok_or("expected the file of the certificate, a comma, and that of its key")
}

impl Server {
    /// Connects to the server, or to all replicas, which share the graphs.
    pub(crate) async fn connect(&self) -> Result<Client, CommandError> {
        Ok(Client::connect_replicas(&self.endpoint, self.connection()?).await?)
    }

    /// Connects to each replica by itself.
    pub(crate) async fn connect_each(&self) -> Result<Connections<Client>, CommandError> {
        Ok(Client::connect_each(&self.endpoint, &self.connection()?).await?)
    }

    fn connection(&self) -> Result<Connection, CommandError> {
        Ok(Connection {
            timeout: Some(self.timeout),
            ..self.credentials.connection()?
        })
    }
}

impl Credentials {
    /// Returns connection settings with these credentials.
    pub(crate) fn connection(&self) -> Result<Connection, CommandError> {
        let authorities = self.ca.as_deref().map(read_text).transpose()?;
        let identity = match &self.certificate {
            Some((certificate, key)) => Some(Identity {
                certificate: read_text(certificate)?,
                key: read_text(key)?,
            }),
            None => None,
        };
        Ok(Connection {
            authorities,
            identity,
            token: self.token()?,
            ..Connection::default()
        })
    }

    fn token(&self) -> Result<Option<Token>, CommandError> {
        // The file comes first: a flag of this call says more than a variable of the whole shell.
        let (text, from) = match self.token_file.as_deref() {
            Some(path) => (read_text(path)?, path.display().to_string()),
            None => match env::var_os(TOKEN).filter(|token| !token.is_empty()) {
                // A text that is not UTF-8 is rejected as a token below.
                Some(token) => (token.to_string_lossy().into_owned(), TOKEN.to_owned()),
                None => return Ok(None),
            },
        };
        let token = text.parse().map(Some);
        token.map_err(|error| CommandError::input(from, error))
    }
}
