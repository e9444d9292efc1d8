//! The graph cache and the embedding cache.

use hlorank_tests::prelude::*;

use crate::metrics::{kernel, rank};

/// Returns the value of a gauge or counter of a cache.
fn of(scrape: &Scrape, cache: &str, name: &str) -> f64 {
    scrape.value(&format!("hlorank_cache_{name}"), &[("cache", cache)])
}

fn hits_and_misses(scrape: &Scrape, cache: &str) -> [f64; 2] {
    ["hit", "miss"].map(|result| {
        let labels = [("cache", cache), ("result", result)];
        scrape.value("hlorank_cache_requests_total", &labels)
    })
}

#[tokio::test]
async fn hits_and_misses_are_counted() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let batch = Configurations::Tile(tiles(&[[1, 2], [3, 4], [1, 2]]));
    // The second handle does not know the hash yet.
    for graph in [kernel(), kernel()] {
        rank(&client, &graph, &batch).await;
        rank(&client, &graph, &batch).await;
    }
    let scrape = server.scrape().await;
    for (cache, requests, entries) in [
        ("graphs_by_source", [1.0, 1.0], 1.0),
        ("graphs_by_hash", [2.0, 0.0], 1.0),
        ("embeddings", [6.0, 2.0], 2.0),
    ] {
        assert_eq!(hits_and_misses(&scrape, cache), requests, "{cache}");
        assert_eq!(of(&scrape, cache, "entries"), entries, "{cache}");
        let [bytes, most] = ["bytes", "max_bytes"].map(|name| of(&scrape, cache, name));
        assert!(0.0 < bytes && bytes < most, "{cache}: {bytes}");
    }
}

#[tokio::test]
async fn a_graph_that_gave_way_is_a_miss_and_is_sent_again() {
    let server = TestServer::start_with(&["--graph-cache-bytes=20000"]).await;
    let client = server.client().await;
    let graphs: Vec<GraphHandle> = (2..10)
        .map(|nodes| GraphHandle::features(&kernel_of(nodes)))
        .collect();
    for graph in &graphs {
        client.put_graph(graph).await.unwrap();
    }
    let scrape = server.scrape().await;
    let entries = of(&scrape, "graphs_by_hash", "entries");
    assert!(entries < 8.0, "{entries}");
    let evictions = of(&scrape, "graphs_by_hash", "evictions_total");
    assert_eq!(evictions, 8.0 - entries);
    // First by hash, and then whole.
    rank(&client, &graphs[0], &grid_configurations(1)).await;
    let scrape = server.scrape().await;
    assert_eq!(hits_and_misses(&scrape, "graphs_by_hash"), [0.0, 1.0]);
    assert_eq!(hits_and_misses(&scrape, "graphs_by_source"), [0.0, 9.0]);
    let refusals = [("reason", "GRAPH_NOT_CACHED")];
    assert_eq!(scrape.value("hlorank_errors_total", &refusals), 1.0);
}

#[tokio::test]
async fn embeddings_that_give_way_are_counted() {
    let server = TestServer::start_with(&["--embedding-cache-bytes=40000"]).await;
    let client = server.client().await;
    rank(&client, &kernel(), &grid_configurations(1000)).await;
    let scrape = server.scrape().await;
    assert_eq!(hits_and_misses(&scrape, "embeddings"), [0.0, 1000.0]);
    let entries = of(&scrape, "embeddings", "entries");
    assert!(0.0 < entries && entries < 200.0, "{entries}");
    let evictions = of(&scrape, "embeddings", "evictions_total");
    assert_eq!(evictions, 1000.0 - entries);
    assert!(of(&scrape, "embeddings", "bytes") <= 40_000.0);
    assert_eq!(scrape.value("hlorank_waiting_rows", &[]), 0.0);
    assert_eq!(scrape.value("hlorank_compute_queue_tasks", &[]), 0.0);
}
