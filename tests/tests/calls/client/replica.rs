//! A server that can be killed and restarted at the same address.

use std::net::SocketAddr;

use hlorank_tests::prelude::*;
use tokio::task::{JoinError, spawn_blocking};

/// Server with its own runtime, which stops abruptly when the server is killed.
pub(crate) struct Replica {
    server: TestServer,
    runtime: Option<Runtime>,
}

impl Replica {
    pub(crate) async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    async fn start_at(address: &str) -> Self {
        let (runtime, listen) = (Runtime::new().unwrap(), format!("--listen={address}"));
        let server = runtime.spawn(async move { TestServer::start_with(&[&listen]).await });
        Self {
            server: server.await.unwrap(),
            runtime: Some(runtime),
        }
    }

    /// Kills the server immediately, which breaks its connections.
    pub(crate) async fn kill(&mut self) -> Result<(), JoinError> {
        let runtime = self.runtime.take();
        spawn_blocking(|| runtime.map(|runtime| runtime.shutdown_timeout(Duration::from_secs(10))))
            .await?;
        Ok(())
    }

    /// Starts a new server at the address of this one, which was killed.
    pub(crate) async fn restart(self) -> Self {
        let address = self.address().to_owned();
        Self::start_at(&address).await
    }

    /// Returns the number of ranking calls that have ended.
    pub(crate) async fn ranked(&self) -> f64 {
        calls(&self.scrape().await, "RankConfigs")
    }
}

impl Reach for Replica {
    fn endpoint(&self) -> &str {
        self.server.endpoint()
    }

    fn metrics(&self) -> Option<SocketAddr> {
        self.server.metrics()
    }

    fn admin_endpoint(&self) -> Option<String> {
        self.server.admin_endpoint()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the number of calls of a method that have ended, with any status.
pub(crate) fn calls(scrape: &Scrape, method: &str) -> f64 {
    scrape.sum("hlorank_requests_total", &[("method", method)])
}

/// Returns distinct graphs, enough for every replica to be assigned some.
pub(crate) fn graphs() -> Vec<GraphHandle> {
    (1..=40)
        .map(|nodes| GraphHandle::features(&kernel_of(nodes)))
        .collect()
}
