//! Fusions are ranked by the predicted seconds of their kernels.

mod answers;
mod reports;

use hlorank_graph::Graph;
use hlorank_tests::prelude::*;

/// A program, and a server that ranks its fusions.
struct Subject {
    _server: TestServer,
    client: Client,
    handle: GraphHandle,
    program: Graph,
}

impl Subject {
    async fn new(name: &str) -> Self {
        let server = TestServer::start_with(&[&all_models_flag()]).await;
        let client = server.client().await;
        let handle = GraphHandle::hlo_module(program_module(name), Task::Fusion, Vec::new());
        Self {
            client,
            handle,
            program: program_graph(name),
            _server: server,
        }
    }

    async fn rank(&self, batch: &FusionBatch) -> Ranking {
        let configurations = Configurations::Fusion(batch.clone());
        let request = hlorank_client::RankRequest::new(&self.handle, &configurations).with_scores();
        self.client.rank(&request).await.unwrap()
    }
}
