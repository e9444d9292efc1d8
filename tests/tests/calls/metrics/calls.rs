//! Calls are counted by method, model, code and reason.

use hlorank_tests::prelude::*;

const MODEL: &str = TILE_MODEL;
const REQUESTS: &str = "hlorank_requests_total";

fn requests(scrape: &Scrape, method: &str, model: &str, code: &str) -> f64 {
    scrape.value(
        REQUESTS,
        &[("method", method), ("model", model), ("code", code)],
    )
}

fn errors(scrape: &Scrape, reason: &str) -> f64 {
    scrape.value("hlorank_errors_total", &[("reason", reason)])
}

/// Returns the number of all counted calls.
fn all_requests(scrape: &Scrape) -> f64 {
    scrape.sum(REQUESTS, &[])
}

/// Returns the metrics once this number of calls has ended.
async fn after(server: &TestServer, calls: f64) -> Scrape {
    server
        .until_metrics(|scrape| all_requests(scrape) >= calls)
        .await
}

async fn rank(client: &Client, graph: &GraphHandle, model: Option<&str>) -> Option<Code> {
    let batch = grid_configurations(5);
    let request = RankRequest::new(graph, &batch).model(model.map(|name| name.parse().unwrap()));
    client
        .rank(&request)
        .await
        .err()
        .map(|error| error.refusal().unwrap().code())
}

#[tokio::test]
async fn calls_are_counted_by_method_model_and_code() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    client.put_graph(&graph).await.unwrap();
    client.list_models().await.unwrap();
    for _ in 0..3 {
        assert_eq!(rank(&client, &graph, None).await, None);
    }
    assert_eq!(rank(&client, &graph, Some(SMALL_TILE_MODEL)).await, None);
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    stream.send(&grid_configurations(2)).await.unwrap();
    stream.finish().await.unwrap();

    let scrape = server.scrape().await;
    assert_eq!(all_requests(&scrape), 7.0);
    for (method, model, count) in [
        ("PutGraph", "none", 1.0),
        ("ListModels", "none", 1.0),
        ("RankConfigs", MODEL, 3.0),
        ("RankConfigs", SMALL_TILE_MODEL, 1.0),
        ("RankConfigsStream", MODEL, 1.0),
    ] {
        assert_eq!(
            requests(&scrape, method, model, "OK"),
            count,
            "{method} {model}"
        );
        let labels = [("method", method), ("model", model)];
        assert_eq!(
            scrape.value("hlorank_request_duration_seconds_count", &labels),
            count
        );
        assert!(scrape.value("hlorank_request_duration_seconds_sum", &labels) > 0.0);
    }
}

#[tokio::test]
async fn errors_are_counted_by_code_and_reason() {
    let server = TestServer::start_with(&["--max-message-bytes=100000"]).await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    assert_eq!(
        rank(&client, &graph, Some("no-such-model")).await,
        Some(Code::NotFound)
    );
    let large = grid_configurations(50_000);
    assert!(
        client
            .rank(&RankRequest::new(&graph, &large))
            .await
            .is_err()
    );
    let empty = grid_configurations(0);
    assert!(
        client
            .rank(&RankRequest::new(&graph, &empty))
            .await
            .is_err()
    );
    let bare = RankConfigsRequest::default();
    assert!(server.rank(bare).await.is_err());
    let start = RankConfigsStreamRequest::default();
    let stream = server
        .cost_model()
        .await
        .rank_configs_stream(tokio_stream::iter([start]))
        .await;
    assert!(stream.unwrap().into_inner().message().await.is_err());

    let scrape = server.scrape().await;
    assert_eq!(all_requests(&scrape), 5.0);
    for (method, model, code, count) in [
        ("RankConfigs", "none", "NOT_FOUND", 1.0),
        ("RankConfigs", "none", "RESOURCE_EXHAUSTED", 1.0),
        ("RankConfigs", "none", "INVALID_ARGUMENT", 1.0),
        ("RankConfigs", MODEL, "INVALID_ARGUMENT", 1.0),
        ("RankConfigsStream", "none", "INVALID_ARGUMENT", 1.0),
    ] {
        assert_eq!(
            requests(&scrape, method, model, code),
            count,
            "{method} {model} {code}"
        );
    }
    for (reason, count) in [
        ("MODEL_NOT_FOUND", 1.0),
        ("MESSAGE_TOO_LARGE", 1.0),
        ("CONFIGS_EMPTY", 1.0),
        ("FIELD_MISSING", 2.0),
    ] {
        assert_eq!(errors(&scrape, reason), count, "{reason}");
    }
    assert_eq!(errors(&scrape, "OTHER"), 0.0);
    let named = |sample: &hlorank_tests::Sample| sample.label("model") == Some("no-such-model");
    assert!(!scrape.samples.iter().any(named), "clients make no series");
}

#[tokio::test]
async fn a_call_that_its_client_leaves_is_cancelled() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&slow_kernel()));
    client.put_graph(&graph).await.unwrap();
    let large = grid_configurations(MANY_TILES);
    let request = RankRequest::new(&graph, &large);
    assert!(
        tokio::time::timeout(Duration::from_millis(300), client.rank(&request))
            .await
            .is_err()
    );
    drop(
        client
            .rank_stream(&StreamRequest::new(&graph))
            .await
            .unwrap(),
    );
    let scrape = after(&server, 3.0).await;
    assert_eq!(requests(&scrape, "RankConfigs", MODEL, "CANCELLED"), 1.0);
    assert_eq!(
        requests(&scrape, "RankConfigsStream", MODEL, "CANCELLED"),
        1.0
    );
}

#[tokio::test]
async fn a_refusal_for_load_is_counted_beside_what_is_in_progress() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let client = server.client_without_retries().await;
    let graph = GraphHandle::features(&kernel_of(3));
    let stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    assert_eq!(
        rank(&client, &graph, None).await,
        Some(Code::ResourceExhausted)
    );
    let scrape = server.scrape().await;
    assert_eq!(errors(&scrape, "OVERLOADED"), 1.0);
    assert_eq!(
        requests(&scrape, "RankConfigs", "none", "RESOURCE_EXHAUSTED"),
        1.0
    );
    assert_eq!(scrape.value("hlorank_requests_in_progress", &[]), 1.0);
    assert_eq!(scrape.value("hlorank_max_requests", &[]), 1.0);
    drop(stream);
    let idle = |scrape: &Scrape| scrape.value("hlorank_requests_in_progress", &[]) == 0.0;
    server.until_metrics(idle).await;
}

#[tokio::test]
async fn an_invalid_output_is_counted() {
    let models = Artifacts::copy();
    models.spoil_opcode(SMALL_TILE_MODEL, 119);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let graph = GraphHandle::features(&chain_kernel(&[119], &[8]));
    let client = server.client().await;
    assert_eq!(
        rank(&client, &graph, Some(SMALL_TILE_MODEL)).await,
        Some(Code::Internal)
    );
    let scrape = server.scrape().await;
    assert_eq!(errors(&scrape, "MODEL_OUTPUT_INVALID"), 1.0);
    assert_eq!(
        requests(&scrape, "RankConfigs", SMALL_TILE_MODEL, "INTERNAL"),
        1.0
    );
}
