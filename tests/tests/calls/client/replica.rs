//! A server that can be killed and restarted at the same address.

use hlorank_tests::prelude::*;
use tokio::task::spawn_blocking;

/// Server with its own runtime, which stops abruptly when the server is killed.
pub(crate) struct Replica {
    pub(crate) server: TestServer,
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
    pub(crate) async fn kill(&mut self) {
        let runtime = self.runtime.take().unwrap();
        spawn_blocking(|| runtime.shutdown_timeout(Duration::from_secs(10)))
            .await
            .unwrap();
    }

    /// Starts a new server at the address of this one, which was killed.
    pub(crate) async fn restart(self) -> Self {
        Self::start_at(self.server.address()).await
    }

    /// Returns the number of ranking calls that have ended.
    pub(crate) async fn ranked(&self) -> f64 {
        calls(&self.server, "RankConfigs").await
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
pub(crate) async fn calls(server: &TestServer, method: &str) -> f64 {
    let scrape = server.scrape().await;
    scrape.sum("hlorank_requests_total", &[("method", method)])
}
