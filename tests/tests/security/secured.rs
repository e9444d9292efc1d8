//! A server with certificates and tokens in files that a test may change, and clients of it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hlorank_proto::v1::{ListModelsRequest, model_service_client::ModelServiceClient};
use hlorank_tests::{Scrape, TestServer};
use tempfile::TempDir;
use tonic::{
    Status,
    transport::{Channel, ClientTlsConfig, Endpoint, Error},
};

use crate::authority::{Authority, Pair};

/// Beyond what a busy machine takes for a look at files or the end of a connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// Files that a server is told of.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Writes a file at once, as who renews one should.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, elsewhere) = (self.0.path().join(name), self.0.path().join("new"));
        fs::write(&elsewhere, text).unwrap();
        fs::rename(&elsewhere, &path).unwrap();
        path
    }

    pub(crate) fn write_pair(&self, pair: &Pair) {
        self.write("tls.crt", &pair.certificate);
        self.write("tls.key", &pair.key);
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Flags for what is there.
    pub(crate) fn flags(&self) -> Vec<String> {
        let names = [
            ("--tls-certificate", "tls.crt"),
            ("--tls-key", "tls.key"),
            ("--tls-client-ca", "ca.crt"),
            ("--tokens", "tokens"),
        ];
        let flags = names.map(|(flag, name)| (flag, self.0.path().join(name)));
        let there = flags.into_iter().filter(|(_, path)| path.exists());
        there.map(|(flag, path)| format!("{flag}={}", path.display())).collect()
    }

    /// Looks at the files many times a second.
    pub(crate) async fn start(&self) -> TestServer {
        self.start_with(&["--poll-seconds=0.02"]).await
    }

    pub(crate) async fn start_with(&self, more: &[&str]) -> TestServer {
        let flags = self.flags();
        TestServer::start_with(
            &flags.iter().map(String::as_str).chain(more.iter().copied()).collect::<Vec<_>>(),
        )
        .await
    }
}

/// TLS to a server on loopback whose certificate these authorities issued.
pub(crate) fn trusting(authorities: &[&Authority]) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .domain_name("localhost")
        .ca_certificates(authorities.iter().map(|authority| authority.certificate()))
}

/// A connection over TLS to what a test server says is at `http://`.
pub(crate) async fn connect(endpoint: &str, tls: ClientTlsConfig) -> Result<Channel, Error> {
    let endpoint = Endpoint::from_shared(endpoint.replace("http://", "https://"))?;
    endpoint.tls_config(tls)?.connect().await
}

/// Asks for models over a connection.
pub(crate) async fn list_models(channel: Channel) -> Result<usize, Status> {
    let answer = ModelServiceClient::new(channel).list_models(ListModelsRequest {}).await;
    answer.map(|answer| answer.into_inner().models.len())
}

/// Waits until the metrics say so.
pub(crate) async fn until(server: &TestServer, is_so: impl Fn(&Scrape) -> bool) {
    let started = Instant::now();
    while !is_so(&server.scrape().await) {
        assert!(started.elapsed() < PATIENCE, "the metrics do not say so");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Connections to the gRPC listener that ended so.
pub(crate) fn connections(scrape: &Scrape, result: &str) -> f64 {
    scrape.value("hlorank_connections_total", &[("listener", "calls"), ("result", result)])
}

/// Changed files that were read with this result.
pub(crate) fn reloads(scrape: &Scrape, credential: &str, result: &str) -> f64 {
    scrape.value("hlorank_credential_reloads_total", &[("credential", credential), ("result", result)])
}
