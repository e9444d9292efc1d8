//! A server that can be killed and started again where it was.

use std::time::Duration;

use hlorank_client::GraphHandle;
use hlorank_graph::Configurations;
use hlorank_tests::{Scrape, TestServer, grid_tiles, kernel_of};
use tokio::{
    runtime::Runtime,
    task::{JoinError, spawn_blocking},
};

/// A server with threads of its own, which end with it in the middle of what they do.
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
        Self { server: server.await.unwrap(), runtime: Some(runtime) }
    }

    pub(crate) fn endpoint(&self) -> &str {
        self.server.endpoint()
    }

    /// Ends it at once, whatever it does; its connections break.
    pub(crate) async fn kill(&mut self) -> Result<(), JoinError> {
        let runtime = self.runtime.take();
        spawn_blocking(|| runtime.map(|runtime| runtime.shutdown_timeout(Duration::from_secs(10)))).await?;
        Ok(())
    }

    /// A new server at the address of this one, which was killed.
    pub(crate) async fn restart(self) -> Self {
        let address = self.endpoint().trim_start_matches("http://").to_owned();
        Self::start_at(&address).await
    }

    pub(crate) async fn scrape(&self) -> Scrape {
        self.server.scrape().await
    }

    /// How many calls to rank have ended.
    pub(crate) async fn ranked(&self) -> f64 {
        calls(&self.scrape().await, "RankConfigs")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How many calls of a method have ended, however they did.
pub(crate) fn calls(scrape: &Scrape, method: &str) -> f64 {
    let is_call = |sample: &&hlorank_tests::Sample| {
        sample.name == "hlorank_requests_total" && sample.label("method") == Some(method)
    };
    scrape.samples.iter().filter(is_call).map(|sample| sample.value).sum()
}

/// Graphs that all differ: enough that every replica has some.
pub(crate) fn graphs() -> Vec<GraphHandle> {
    (1..=40).map(|nodes| GraphHandle::features(&kernel_of(nodes))).collect()
}

pub(crate) fn tiles(count: i64) -> Configurations {
    Configurations::Tile(grid_tiles(count))
}
