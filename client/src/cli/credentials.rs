//! Certificates, keys and tokens from files and environment variables.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{Connection, Identity, Token};

use super::error::CommandError;

/// The arguments for TLS and tokens.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Security")]
pub(crate) struct Credentials {
    /// Certificate authorities to trust at https://, in PEM
    ///
    /// [default: those of the system]
    #[arg(long, value_name = "FILE", env = "HLORANK_CA")]
    ca: Option<PathBuf>,
    /// Certificate for servers that require one, in PEM
    ///
    /// It is for mutual TLS.
    #[arg(
        long,
        value_name = "FILE",
        env = "HLORANK_CERTIFICATE",
        requires = "key"
    )]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "HLORANK_KEY",
        requires = "certificate"
    )]
    key: Option<PathBuf>,
    /// File with the token to send with every call
    ///
    /// [default: the token in `HLORANK_TOKEN`, if set]
    #[arg(long, value_name = "FILE", env = "HLORANK_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The environment variable with the token itself. There is no flag for it, because process lists show flags.
const TOKEN: &str = "HLORANK_TOKEN";

impl Credentials {
    /// Returns connection settings with these credentials.
    pub(crate) fn connection(&self) -> Result<Connection, CommandError> {
        let authorities = self.ca.as_deref().map(read).transpose()?;
        // clap has checked that a certificate comes with its key.
        let identity = self.certificate.as_deref().zip(self.key.as_deref());
        let identity = identity.map(|(certificate, key)| {
            Ok::<_, CommandError>(Identity {
                certificate: read(certificate)?,
                key: read(key)?,
            })
        });
        Ok(Connection {
            authorities,
            identity: identity.transpose()?,
            token: self.token()?,
            ..Connection::default()
        })
    }

    fn token(&self) -> Result<Option<Token>, CommandError> {
        // The file comes first: a flag of this call says more than a variable of the whole shell.
        let (text, from) = match &self.token_file {
            Some(path) => (read(path)?, path.display().to_string()),
            None => match env::var_os(TOKEN).filter(|token| !token.is_empty()) {
                // A text that is not UTF-8 is rejected as a token below.
                Some(token) => (token.to_string_lossy().into_owned(), TOKEN.to_owned()),
                None => return Ok(None),
            },
        };
        text.parse()
            .map(Some)
            .map_err(|source| CommandError::Token { from, source })
    }
}

fn read(path: &Path) -> Result<String, CommandError> {
    fs::read_to_string(path).map_err(|source| CommandError::CredentialFile {
        path: path.display().to_string(),
        source,
    })
}
