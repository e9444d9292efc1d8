//! Calls are counted by method, model, code and reason.

use hlorank_tests::prelude::*;

use crate::metrics::{kernel, rank};

const REQUESTS: &str = "hlorank_requests_total";

/// Asserts how many calls of a method had this code, by the model that answered.
fn assert_counted(scrape: &Scrape, method: &str, model: &str, code: &str, count: f64) {
    let labels = [("method", method), ("model", model), ("code", code)];
    assert_eq!(scrape.value(REQUESTS, &labels), count, "{labels:?}");
}

#[tokio::test]
async fn calls_are_counted_by_method_model_and_code() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, kernel());
    let batch = grid_configurations(5);
    client.put_graph(&graph).await.unwrap();
    client.list_models().await.unwrap();
    for model in [TILE_MODEL, TILE_MODEL, TILE_MODEL, SMALL_TILE_MODEL] {
        rank_by(&client, model, &graph, &batch).await.unwrap();
    }
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    let mut stream = stream.unwrap();
    stream.send(&batch).await.unwrap();
    stream.finish().await.unwrap();

    let scrape = server.scrape().await;
    assert_eq!(scrape.sum(REQUESTS, &[]), 7.0);
    for (method, model, count) in [
        ("PutGraph", "none", 1.0),
        ("ListModels", "none", 1.0),
        ("RankConfigs", TILE_MODEL, 3.0),
        ("RankConfigs", SMALL_TILE_MODEL, 1.0),
        ("RankConfigsStream", TILE_MODEL, 1.0),
    ] {
        assert_counted(&scrape, method, model, "OK", count);
        let duration = |part: &str| {
            let name = format!("hlorank_request_duration_seconds_{part}");
            scrape.value(&name, &[("method", method), ("model", model)])
        };
        assert_eq!(duration("count"), count);
        assert!(duration("sum") > 0.0);
    }
}

#[tokio::test]
async fn errors_are_counted_by_code_and_reason() {
    let server = TestServer::start_with(&["--max-message-bytes=100000"]).await;
    let (client, graph) = (server.client().await, kernel());
    let five = grid_configurations(5);
    let unknown = rank_by(&client, "no-such-model", &graph, &five).await;
    assert_reason(&unknown.unwrap_err(), "MODEL_NOT_FOUND");
    for (configs, reason) in [(50_000, "MESSAGE_TOO_LARGE"), (0, "CONFIGS_EMPTY")] {
        let batch = grid_configurations(configs);
        let refused = client.rank(&RankRequest::new(&graph, &batch)).await;
        assert_reason(&refused.unwrap_err(), reason);
    }
    let bare = RankConfigsRequest::default();
    assert!(server.rank(bare).await.is_err());
    let start = RankConfigsStreamRequest::default();
    let mut service = server.cost_model().await;
    let stream = service.rank_configs_stream(tokio_stream::iter([start]));
    let mut answers = stream.await.unwrap().into_inner();
    assert!(answers.message().await.is_err());

    let scrape = server.scrape().await;
    assert_eq!(scrape.sum(REQUESTS, &[]), 5.0);
    for (method, model, code, count) in [
        ("RankConfigs", "none", "NOT_FOUND", 1.0),
        ("RankConfigs", "none", "RESOURCE_EXHAUSTED", 1.0),
        ("RankConfigs", "none", "INVALID_ARGUMENT", 1.0),
        ("RankConfigs", TILE_MODEL, "INVALID_ARGUMENT", 1.0),
        ("RankConfigsStream", "none", "INVALID_ARGUMENT", 1.0),
    ] {
        assert_counted(&scrape, method, model, code, count);
    }
    for (reason, count) in [
        ("MODEL_NOT_FOUND", 1.0),
        ("MESSAGE_TOO_LARGE", 1.0),
        ("CONFIGS_EMPTY", 1.0),
        ("FIELD_MISSING", 2.0),
        ("OTHER", 0.0),
    ] {
        let errors = scrape.value("hlorank_errors_total", &[("reason", reason)]);
        assert_eq!(errors, count, "{reason}");
    }
    let named = |sample: &Sample| sample.label("model") == Some("no-such-model");
    assert!(!scrape.samples.iter().any(named), "clients make no series");
}

#[tokio::test]
async fn a_refusal_for_load_is_counted_beside_what_is_in_progress() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let (client, graph) = (server.client_without_retries().await, kernel());
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    let stream = stream.unwrap();
    let refused = rank_by(&client, TILE_MODEL, &graph, &grid_configurations(5)).await;
    assert_reason(&refused.unwrap_err(), "OVERLOADED");
    let scrape = server.scrape().await;
    assert_counted(&scrape, "RankConfigs", "none", "RESOURCE_EXHAUSTED", 1.0);
    let overloaded = [("reason", "OVERLOADED")];
    assert_eq!(scrape.value("hlorank_errors_total", &overloaded), 1.0);
    assert_eq!(scrape.value("hlorank_requests_in_progress", &[]), 1.0);
    assert_eq!(scrape.value("hlorank_max_requests", &[]), 1.0);
    drop(stream);
    server.until_idle().await;
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&slow_kernel()));
    client.put_graph(&graph).await.unwrap();
    let large = grid_configurations(MANY_TILES);
    let left = timeout(Duration::from_millis(300), rank(&client, &graph, &large)).await;
    assert!(left.is_err(), "the call was over before it was left");
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    drop(stream.unwrap());
    let scrape = server
        .until_metrics(|scrape| scrape.sum(REQUESTS, &[]) >= 3.0)
        .await;
    for method in ["RankConfigs", "RankConfigsStream"] {
        assert_counted(&scrape, method, TILE_MODEL, "CANCELLED", 1.0);
    }
}
