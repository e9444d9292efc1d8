//! Work that many clients need at the same time is done once.

use futures::future::join_all;
use hlorank_tests::prelude::*;
use tokio::sync::Barrier;

use crate::under_load::requests::{alone, scores};

const CLIENTS: usize = 256;
const BLOCKS: usize = 60;

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_with_one_cold_graph_have_it_read_once() {
    let _alone = alone().await;
    let server = TestServer::start().await;
    let blocks: Vec<usize> = (0..BLOCKS).collect();
    let graph = block_graph(&[26, 34, 2, 80], &[8, 16, 3, 128, 7, 64, 1], &blocks);
    let choices: Vec<Vec<usize>> = (0..8)
        .map(|config| vec![config, config / 3, config % 7])
        .collect();
    let layouts = Arc::new(Configurations::Layout(layouts(
        graph.configurable().len(),
        &choices,
    )));
    let start = Arc::new(Barrier::new(CLIENTS));
    let mut asked = Vec::new();
    for _ in 0..CLIENTS {
        let client = server.client_without_retries().await;
        let graph = GraphHandle::features(&graph);
        let (layouts, start) = (Arc::clone(&layouts), Arc::clone(&start));
        asked.push(tokio::spawn(async move {
            start.wait().await;
            scores(&client, &graph, &layouts).await
        }));
    }
    let answers: BTreeSet<Vec<u32>> = join_all(asked)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(answers.len(), 1, "different answers");
    let scrape = server.scrape().await;
    let featurize = [("stage", "featurize")];
    let featurized = scrape.value("hlorank_stage_duration_seconds_count", &featurize);
    assert_eq!(featurized, 1.0);
    let model = [("model", "layout-xla-cpu")];
    let evaluated = scrape.value("hlorank_rows_evaluated_total", &model);
    assert_eq!(
        evaluated,
        scrape.value("hlorank_cache_entries", &[("cache", "embeddings")]),
        "each row was evaluated once"
    );
}
