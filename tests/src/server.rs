//! A server in this process on a free port of loopback, with the models of the tests.

use std::{net::SocketAddr, path::Path};

use clap::Parser;
use hlorank_client::Client;
use hlorank_server::{RunningServer, StartError, settings::Settings};
use tempfile::TempDir;

use crate::{Reach, TILE_MODEL, models, onnxruntime};

/// Server that stops when it is dropped.
pub struct TestServer {
    endpoint: String,
    server: RunningServer,
}

/// Returns the server flag of a store of measurements in a folder.
pub fn store_flag(folder: &Path) -> String {
    format!("--measurements={}", folder.join("measurements").display())
}

/// Starts a server with these flags that keeps measurements in a new folder, and connects a client. The folder has to outlive
/// both.
pub async fn storing_server(flags: &[&str]) -> (TempDir, TestServer, Client) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (server, client) = storing_server_at(&store_flag(folder.path()), flags).await;
    (folder, server, client)
}

/// Starts a server with these flags and the store that a flag names, and connects a client.
pub async fn storing_server_at(store: &str, flags: &[&str]) -> (TestServer, Client) {
    let server = TestServer::start_with(&[&[store], flags].concat()).await;
    let client = server.client().await;
    (server, client)
}

impl TestServer {
    /// Starts a server with default settings.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with default settings and these flags; XLA's tiles, which most tests rank, have the default
    /// model.
    pub async fn start_with(flags: &[&str]) -> Self {
        Self::try_start_with(flags)
            .await
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts a server with default settings and these flags; XLA's tiles, which most tests rank, have the default
    /// model.
    pub async fn try_start_with(flags: &[&str]) -> Result<Self, StartError> {
        let models = models().display().to_string();
        let library = onnxruntime().display().to_string();
        let tiles = format!("tile={TILE_MODEL}");
        let mut arguments = vec!["hlorank-server", "--onnxruntime", &library];
        let defaults = [
            ["--listen", "127.0.0.1:0"],
            ["--metrics-listen", "127.0.0.1:0"],
            ["--models", &models],
            ["--default-models", &tiles],
        ];
        let is_given = |[flag, _]: &[&str; 2]| flags.iter().any(|given| given.starts_with(flag));
        arguments.extend(
            defaults
                .iter()
                .filter(|default| !is_given(default))
                .flatten(),
        );
        arguments.extend(flags);
        let settings = Settings::parse_from(arguments);
        let server = hlorank_server::start(settings).await?;
        Ok(Self {
            endpoint: format!("http://{}", server.address()),
            server,
        })
    }

    /// Reloads models, certificates and tokens, as the program does on SIGHUP.
    pub fn reload(&self) {
        self.server.reload();
    }

    /// Stops gracefully, as the program does on SIGTERM.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

impl Reach for TestServer {
    fn endpoint(&self) -> &str {
        &self.endpoint
    }

    fn metrics(&self) -> Option<SocketAddr> {
        self.server.metrics_address()
    }

    fn admin_endpoint(&self) -> Option<String> {
        self.server
            .admin_address()
            .map(|address| format!("http://{address}"))
    }
}
