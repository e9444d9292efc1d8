use base64::{Engine as _, prelude::BASE64_STANDARD};
use hlorank_tests::prelude::*;

use crate::json_calls::curl::{PUT, RANK, call, call_with};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_equals_that_of_grpc_over_both_versions_of_http() {
    let server = TestServer::start().await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_tiles(20_000));
    let tile = |config: usize| {
        let tile = tiles.get(config);
        let tile = tile.view();
        json!({
            "kernelBounds": tile.kernel_bounds, "outputBounds": tile.output_bounds, "inputBounds": tile.input_bounds,
        })
    };
    let configs: Vec<Value> = (0..tiles.len()).map(tile).collect();
    let batch = Configurations::Tile(tiles);
    let request = RankRequest::new(&graph, &batch).with_scores();
    let expected = server.client().await.rank(&request).await.unwrap();
    let ranking: Vec<_> = expected.best.iter().map(|ranked| ranked.config).collect();
    let request = json!({
        "graph": { "graphHash": BASE64_STANDARD.encode(expected.graph_hash.0) },
        "batch": { "tileConfigs": { "configs": configs } },
        "includeScores": true,
    });
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let answered = call_with(server.endpoint(), RANK, &request.to_string(), &[version]).await;
        assert_eq!(answered.status, 200, "{}", answered.body);
        says!(answered.headers, "content-type: application/json");
        let answer = answered.json();
        assert_eq!(answer["ranking"], json!(ranking), "{version}");
        let scores: Vec<f32> = serde_json::from_value(answer["scores"].clone()).unwrap();
        assert_eq!(scores, expected.scores, "bit for bit");
        assert_eq!(answer["model"]["name"], TILE_MODEL);
        let total = answer["timings"]["total"].as_str().unwrap();
        assert!(total.ends_with('s'), "{total}");
        let configs = &answer["reuse"]["configs"];
        assert_eq!(configs, "20000", "numbers of 64 bits are texts");
    }
    let calls = [("method", "RankConfigs"), ("code", "OK")];
    let counted = server.scrape().await.sum("hlorank_requests_total", &calls);
    assert_eq!(counted, 3.0, "one call of gRPC and two with JSON");
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_sent_in_base64_and_its_layouts_are_ranked() {
    let server = TestServer::start().await;
    let module = fs::read(fixture("hlo/mlp_train.before_opt.hlo_module.pb")).unwrap();
    let request = json!({
        "graph": { "hlo_module": BASE64_STANDARD.encode(module), "task": "TASK_LAYOUT" },
    });
    let answered = call(server.endpoint(), PUT, &request.to_string()).await;
    assert_eq!(answered.status, 200, "{}", answered.body);
    let answer = answered.json();
    assert_eq!(answer["summary"]["nodes"], 109);
    assert_eq!(answer["configurableNodes"].as_array().unwrap().len(), 14);
    let set = json!({ "nodes": [{ "node": 49, "tensors": [{ "minorToMajor": [0, 1] }] }] });
    let request = json!({
        "graph": { "graphHash": answer["graphHash"] }, "batch": { "layoutConfigs": { "configs": [{}, set] } },
    });
    let answered = call(server.endpoint(), RANK, &request.to_string()).await;
    let answer = answered.json();
    assert_eq!(answer["ranking"][0], 0, "{answer}");
    assert_eq!(answer["scoredConfigs"], 2, "{answer}");
}
