//! Certificates, tokens, and a server that reads them from files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hlorank_graph::Digest;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tonic::transport::{Certificate, Identity};

use crate::TestServer;

/// Certificate authority of one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Certificate of the authority, as PEM.
    pub pem: String,
}

/// Certificate and private key, as PEM.
pub struct Pair {
    /// Certificate.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

/// Certificate and token files that a server reads and a test may change.
pub struct Files(TempDir);

impl Authority {
    /// Creates an authority that no certificate store trusts yet.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let mut params = params(&[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Issues a certificate for these names that expires at the end of a year.
    fn issue_for(&self, names: &[&str], year: i32) -> Pair {
        let mut params = params(names);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair {
            certificate,
            key: key.serialize_pem(),
        }
    }

    /// Issues a certificate for a server on loopback or a client that expires at the end of this year.
    pub fn issue_until(&self, year: i32) -> Pair {
        self.issue_for(&["localhost", "127.0.0.1"], year)
    }

    /// Issues a certificate for a server on loopback or a client.
    pub fn issue(&self) -> Pair {
        self.issue_until(4000)
    }

    /// Issues a certificate for a server at another address.
    pub fn issue_elsewhere(&self) -> Pair {
        self.issue_for(&["ranker.example"], 4000)
    }

    /// Returns the certificate and the key of the authority itself.
    pub fn own(&self) -> Pair {
        Pair {
            certificate: self.pem.clone(),
            key: self.issuer.key().serialize_pem(),
        }
    }

    /// Returns the certificate of the authority, for a client.
    pub fn certificate(&self) -> Certificate {
        Certificate::from_pem(&self.pem)
    }
}

impl Pair {
    /// Returns the identity that a client presents.
    pub fn identity(&self) -> Identity {
        Identity::from_pem(&self.certificate, &self.key)
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().copied().map(str::to_owned).collect();
    CertificateParams::new(names).unwrap()
}

/// Returns a line of a token file.
pub fn token_line(name: &str, scopes: &str, token: &str) -> String {
    let digest = Digest(Sha256::digest(token).into());
    format!("{name} {scopes} sha256:{digest}\n")
}

impl Files {
    /// Creates an empty folder.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates a folder with the certificate and the key of the server.
    pub fn with_pair(pair: &Pair) -> Self {
        let files = Self::new();
        files.write_pair(pair);
        files
    }

    /// Replaces a file atomically, as a renewal should, and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, elsewhere) = (self.0.path().join(name), self.0.path().join("new"));
        fs::write(&elsewhere, text).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        path
    }

    /// Writes the certificate and the key of the server.
    pub fn write_pair(&self, pair: &Pair) {
        self.write("tls.crt", &pair.certificate);
        self.write("tls.key", &pair.key);
    }

    /// Returns the folder of the files.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Returns the server flags for the files that exist.
    pub fn flags(&self) -> Vec<String> {
        let names = [
            ("--tls-certificate", "tls.crt"),
            ("--tls-key", "tls.key"),
            ("--tls-client-ca", "ca.crt"),
            ("--tokens", "tokens"),
        ];
        let flags = names.map(|(flag, name)| (flag, self.0.path().join(name)));
        let there = flags.into_iter().filter(|(_, path)| path.exists());
        there
            .map(|(flag, path)| format!("{flag}={}", path.display()))
            .collect()
    }

    /// Starts a server that polls the files many times a second.
    pub async fn start(&self) -> TestServer {
        self.start_with(&["--poll-seconds=0.02"]).await
    }

    /// Starts such a server with more flags.
    pub async fn start_with(&self, more: &[&str]) -> TestServer {
        let own = self.flags();
        let mut flags: Vec<&str> = own.iter().map(String::as_str).collect();
        flags.extend(more);
        TestServer::start_with(&flags).await
    }
}

/// Returns the `https://` address of a test server that reports an `http://` address.
pub fn over_tls(endpoint: &str) -> String {
    endpoint.replace("http://", "https://")
}
