use std::path::PathBuf;

use rustls::pki_types::pem;

/// Why certificates or tokens were not taken. Nothing that a file holds is in it.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A flag that needs another.
    #[error("{given} needs {missing}")]
    Incomplete {
        /// What was given.
        given: &'static str,
        /// What to give, too.
        missing: &'static str,
    },
    /// A file that cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not what it should be.
    #[error("`{path}` is no {expected} in PEM: {source}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// A certificate that cannot be read.
    #[error("the certificate in `{path}` cannot be read: {detail}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// A key that belongs to another certificate.
    #[error("the key in `{key}` is not that of the certificate in `{certificate}`")]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// A pair that TLS cannot be spoken with.
    #[error("`{certificate}` and `{key}` do not serve for TLS: {source}")]
    Tls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// Authorities of clients that cannot be trusted.
    #[error("`{path}` has no authority that clients' certificates can be checked by: {detail}")]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// A line that names no token.
    #[error("line {line} of `{path}`: {detail}; a line is NAME SCOPES sha256:HEX")]
    TokenLine {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        detail: &'static str,
    },
    /// A file of nobody's tokens.
    #[error("`{path}` has no token; without --tokens calls need none")]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
}
