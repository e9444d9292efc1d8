use std::path::PathBuf;

use rustls::pki_types::pem;

/// Why certificates or tokens cannot be used. Errors do not quote the contents of files.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// A flag is set without another that it requires.
    #[error("{given} needs {missing}")]
    Incomplete {
        /// The flag that is set.
        given: &'static str,
        /// The flag that is missing.
        missing: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file has no PEM section of the expected kind.
    #[error("`{path}` is no {expected} in PEM: {source}")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected kind.
        expected: &'static str,
        /// Why.
        source: pem::Error,
    },
    /// A certificate cannot be parsed.
    #[error("the certificate in `{path}` cannot be parsed: {detail}")]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// The key belongs to another certificate.
    #[error("the key in `{key}` is not that of the certificate in `{certificate}`")]
    Mismatch {
        /// The file of the key.
        key: PathBuf,
        /// The file of the certificate.
        certificate: PathBuf,
    },
    /// TLS does not accept the certificate and its key.
    #[error("TLS cannot use `{certificate}` and `{key}`: {source}")]
    Tls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The certificate authorities of clients cannot be used.
    #[error("`{path}` has no certificate authority that can verify clients: {detail}")]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// Why.
        detail: String,
    },
    /// A line does not describe a token.
    #[error("line {line} of `{path}`: {detail}; a line is NAME SCOPES sha256:HEX")]
    TokenLine {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// What is wrong.
        detail: &'static str,
    },
    /// A file has no tokens.
    #[error("`{path}` has no token; leave out --tokens to require none")]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
}
