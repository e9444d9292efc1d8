use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

use clap::{Args, value_parser};

/// Who may call, and how much of the server a connection may take.
#[derive(Clone, Debug, Args)]
pub struct SecuritySettings {
    /// Certificate of the gRPC and admin listeners and those up to its authority, as PEM, for TLS; `off` for none. This
    /// file and the next three are read again when they change, and on SIGHUP
    #[arg(long, env = "HLORANK_TLS_CERTIFICATE", value_name = "FILE", default_value = "off")]
    pub tls_certificate: FileOrOff,

    /// Private key of the certificate, as PEM
    #[arg(long, env = "HLORANK_TLS_KEY", value_name = "FILE", default_value = "off")]
    pub tls_key: FileOrOff,

    /// Authorities, as PEM, of which every client must show a certificate; `off` to ask for none
    #[arg(long, env = "HLORANK_TLS_CLIENT_CA", value_name = "FILE", default_value = "off")]
    pub tls_client_ca: FileOrOff,

    /// Digests of the bearer tokens that calls must carry one of, a line each: NAME SCOPES sha256:HEX, with scopes
    /// `read`, `admin` or `read,admin`; `off` to ask for none
    #[arg(long, env = "HLORANK_TOKENS", value_name = "FILE", default_value = "off")]
    pub tokens: FileOrOff,

    /// Connections of the gRPC listener, and as many of the admin listener; one more is closed at once
    #[arg(long, env = "HLORANK_MAX_CONNECTIONS", value_name = "CONNECTIONS", default_value_t = 1024, value_parser = value_parser!(u32).range(1..))]
    pub max_connections: u32,

    /// Calls in progress on one connection; clients wait with more
    #[arg(long, env = "HLORANK_MAX_CONNECTION_CALLS", value_name = "CALLS", default_value_t = 200, value_parser = value_parser!(u32).range(1..))]
    pub max_connection_calls: u32,

    /// Bytes of the headers of one call, names, values and 32 for each counted
    #[arg(long, env = "HLORANK_MAX_HEADER_BYTES", value_name = "BYTES", default_value_t = 16 << 10, value_parser = value_parser!(u32).range(1024..))]
    pub max_header_bytes: u32,
}

/// A file, if any: a path, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrOff(pub Option<PathBuf>);

impl FromStr for FileOrOff {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self((text != "off").then(|| PathBuf::from(text))))
    }
}

impl fmt::Display for FileOrOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}
