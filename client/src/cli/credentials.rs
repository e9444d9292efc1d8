//! What TLS and tokens need, from files.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use hlorank_client::{Connection, Identity, Token};

use super::error::CommandError;

/// Who is trusted, and who calls.
#[derive(Clone, Debug, Args)]
pub(crate) struct Credentials {
    /// Authorities of servers at https://, in PEM; left out, those that the system trusts
    #[arg(long, value_name = "FILE", env = "HLORANK_CA")]
    ca: Option<PathBuf>,
    /// Certificate for servers that ask for one, in PEM
    #[arg(long, value_name = "FILE", env = "HLORANK_CERTIFICATE", requires = "key")]
    certificate: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", env = "HLORANK_KEY", requires = "certificate")]
    key: Option<PathBuf>,
    /// File of the token that calls bring; left out, the variable `HLORANK_TOKEN` is the token
    #[arg(long, value_name = "FILE", env = "HLORANK_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// The token itself. It is no flag, for whoever lists processes sees those.
const TOKEN: &str = "HLORANK_TOKEN";

impl Credentials {
    /// A connection with them.
    pub(crate) fn connection(&self) -> Result<Connection, CommandError> {
        let authorities = self.ca.as_deref().map(read).transpose()?;
        let identity = self.certificate.as_deref().zip(self.key.as_deref());
        let identity = identity.map(|(certificate, key)| {
            Ok::<_, CommandError>(Identity { certificate: read(certificate)?, key: read(key)? })
        });
        let (identity, token) = (identity.transpose()?, self.token()?);
        Ok(Connection { authorities, identity, token, ..Connection::default() })
    }

    fn token(&self) -> Result<Option<Token>, CommandError> {
        let (text, from) = match &self.token_file {
            Some(path) => (read(path)?, path.display().to_string()),
            None => match env::var_os(TOKEN).filter(|token| !token.is_empty()) {
                // What is not UTF-8 is no token either way.
                Some(token) => (token.to_string_lossy().into_owned(), TOKEN.to_owned()),
                None => return Ok(None),
            },
        };
        text.parse().map(Some).map_err(|source| CommandError::Token { from, source })
    }
}

fn read(path: &Path) -> Result<String, CommandError> {
    fs::read_to_string(path)
        .map_err(|source| CommandError::CredentialFile { path: path.display().to_string(), source })
}
