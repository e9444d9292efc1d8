//! The graph cache and the embedding cache.

use hlorank_tests::prelude::*;

fn requests(scrape: &Scrape, cache: &str) -> [f64; 2] {
    let value = |result| {
        scrape.value(
            "hlorank_cache_requests_total",
            &[("cache", cache), ("result", result)],
        )
    };
    [value("hit"), value("miss")]
}

#[tokio::test]
async fn hits_and_misses_are_counted() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let batch = Configurations::Tile(tiles(&[[1, 2], [3, 4], [1, 2]]));
    // The second client does not know the hash yet.
    for _ in 0..2 {
        let graph = GraphHandle::features(&kernel_of(3));
        client
            .rank(&RankRequest::new(&graph, &batch))
            .await
            .unwrap();
        client
            .rank(&RankRequest::new(&graph, &batch))
            .await
            .unwrap();
    }
    let scrape = server.scrape().await;
    assert_eq!(requests(&scrape, "graphs_by_source"), [1.0, 1.0]);
    assert_eq!(requests(&scrape, "graphs_by_hash"), [2.0, 0.0]);
    assert_eq!(requests(&scrape, "embeddings"), [6.0, 2.0]);
    assert_eq!(
        scrape.value("hlorank_cache_entries", &[("cache", "embeddings")]),
        2.0
    );
    let bytes = scrape.value("hlorank_cache_bytes", &[("cache", "embeddings")]);
    assert!(
        0.0 < bytes && bytes < scrape.value("hlorank_cache_max_bytes", &[("cache", "embeddings")]),
        "{bytes}"
    );
    for cache in [("cache", "graphs_by_source"), ("cache", "graphs_by_hash")] {
        assert_eq!(scrape.value("hlorank_cache_entries", &[cache]), 1.0);
        let bytes = scrape.value("hlorank_cache_bytes", &[cache]);
        assert!(
            0.0 < bytes && bytes < scrape.value("hlorank_cache_max_bytes", &[cache]),
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn a_graph_that_is_not_there_is_a_miss() {
    let small = TestServer::start_with(&["--graph-cache-bytes=20000"]).await;
    let client = small.client().await;
    let batch = Configurations::Tile(tiles(&[[1, 2]]));
    let graphs: Vec<GraphHandle> = (2..10)
        .map(|nodes| GraphHandle::features(&kernel_of(nodes)))
        .collect();
    for graph in &graphs {
        client.put_graph(graph).await.unwrap();
    }
    let scrape = small.scrape().await;
    let entries = scrape.value("hlorank_cache_entries", &[("cache", "graphs_by_hash")]);
    assert!(entries < 8.0, "{entries}");
    assert_eq!(
        scrape.value(
            "hlorank_cache_evictions_total",
            &[("cache", "graphs_by_hash")]
        ),
        8.0 - entries
    );
    // First by hash, and then whole.
    client
        .rank(&RankRequest::new(&graphs[0], &batch))
        .await
        .unwrap();
    let scrape = small.scrape().await;
    assert_eq!(requests(&scrape, "graphs_by_hash"), [0.0, 1.0]);
    assert_eq!(requests(&scrape, "graphs_by_source"), [0.0, 9.0]);
    assert_eq!(
        scrape.value("hlorank_errors_total", &[("reason", "GRAPH_NOT_CACHED")]),
        1.0
    );
}

#[tokio::test]
async fn embeddings_that_give_way_are_counted() {
    let server = TestServer::start_with(&["--embedding-cache-bytes=40000"]).await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    let batch = grid_configurations(1000);
    client
        .rank(&RankRequest::new(&graph, &batch))
        .await
        .unwrap();
    let scrape = server.scrape().await;
    assert_eq!(requests(&scrape, "embeddings"), [0.0, 1000.0]);
    let entries = scrape.value("hlorank_cache_entries", &[("cache", "embeddings")]);
    assert!(0.0 < entries && entries < 200.0, "{entries}");
    assert_eq!(
        scrape.value("hlorank_cache_evictions_total", &[("cache", "embeddings")]),
        1000.0 - entries
    );
    assert!(scrape.value("hlorank_cache_bytes", &[("cache", "embeddings")]) <= 40_000.0);
    assert_eq!(scrape.value("hlorank_waiting_rows", &[]), 0.0);
    assert_eq!(scrape.value("hlorank_compute_queue_tasks", &[]), 0.0);
}
