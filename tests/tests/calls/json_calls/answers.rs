use base64::{Engine as _, prelude::BASE64_STANDARD};
use hlorank_tests::prelude::*;

use crate::json_calls::curl::{call, call_with};

/// Tiles of [`grid_tiles`] as JSON.
fn tiles(count: i64) -> serde_json::Value {
    let batch = grid_tiles(count);
    let tile = |config: usize| {
        let tile = batch.get(config);
        let tile = tile.view();
        json!({
            "kernelBounds": tile.kernel_bounds, "outputBounds": tile.output_bounds, "inputBounds": tile.input_bounds,
        })
    };
    json!({ "tileConfigs": { "configs": (0..batch.len()).map(tile).collect::<Vec<_>>() } })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_equals_that_of_grpc_over_both_versions_of_http() {
    let server = TestServer::start().await;
    let (graph, batch) = (
        GraphHandle::features(&kernel_of(3)),
        grid_configurations(40),
    );
    let expected = server
        .client()
        .await
        .rank(&RankRequest::new(&graph, &batch).with_scores())
        .await
        .unwrap();
    let request = json!({
        "graph": { "graphHash": BASE64_STANDARD.encode(expected.graph_hash.0) },
        "batch": tiles(40),
        "includeScores": true,
    });
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let request = request.to_string();
        let answered = call_with(
            server.endpoint(),
            "CostModelService/RankConfigs",
            &request,
            &[version],
        )
        .await;
        assert_eq!(answered.status, 200, "{}", answered.body);
        says!(answered.headers, "content-type: application/json");
        let answer = answered.json();
        let ranking: Vec<_> = expected.best.iter().map(|ranked| ranked.config).collect();
        assert_eq!(answer["ranking"], json!(ranking), "{version}");
        let scores: Vec<f32> = serde_json::from_value(answer["scores"].clone()).unwrap();
        assert_eq!(scores, expected.scores, "bit for bit");
        assert_eq!(answer["model"]["name"], TILE_MODEL);
        assert!(
            answer["timings"]["total"].as_str().unwrap().ends_with('s'),
            "{answer}"
        );
        assert_eq!(
            answer["reuse"]["configs"], "40",
            "numbers of 64 bits are texts"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_sent_as_text_or_base64_and_its_layouts_are_ranked() {
    let server = TestServer::start().await;
    let file = |name: &str| std::fs::read(fixture(HLO_FIXTURES).join(name)).unwrap();
    let text = String::from_utf8(file("mlp_train.before_opt.hlo.txt")).unwrap();
    let module = BASE64_STANDARD.encode(file("mlp_train.before_opt.hlo_module.pb"));
    let mut hashes = Vec::new();
    for graph in [json!({ "hloText": text }), json!({ "hlo_module": module })] {
        let mut request = json!({ "graph": graph });
        request["graph"]["task"] = "TASK_LAYOUT".into();
        let answered = call(
            server.endpoint(),
            "CostModelService/PutGraph",
            &request.to_string(),
        )
        .await;
        assert_eq!(answered.status, 200, "{}", answered.body);
        let answer = answered.json();
        assert_eq!(answer["summary"]["nodes"], 109);
        assert_eq!(answer["configurableNodes"].as_array().unwrap().len(), 14);
        hashes.push(answer["graphHash"].clone());
    }
    assert_eq!(hashes[0], hashes[1]);
    let set = json!({ "nodes": [{ "node": 49, "tensors": [{ "minorToMajor": [0, 1] }] }] });
    let request = json!({
        "graph": { "graphHash": hashes[0] }, "batch": { "layoutConfigs": { "configs": [{}, set] } },
    });
    let answer = call(
        server.endpoint(),
        "CostModelService/RankConfigs",
        &request.to_string(),
    )
    .await
    .json();
    assert_eq!(
        (&answer["ranking"][0], &answer["scoredConfigs"]),
        (&0.into(), &2.into()),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn models_are_listed_and_calls_are_counted_like_those_of_grpc() {
    let server = TestServer::start().await;
    let answer = call(server.endpoint(), "ModelService/ListModels", "{}")
        .await
        .json();
    let names: Vec<_> = answer["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["name"].clone())
        .collect();
    assert!(names.contains(&"layout-xla-cpu".into()), "{answer}");
    let scrape = server.scrape().await;
    assert_eq!(scrape.sum("hlorank_requests_total", &[]), 1.0);
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_is_complete() {
    let server = TestServer::start().await;
    let (graph, batch) = (
        GraphHandle::features(&kernel_of(3)),
        grid_configurations(20_000),
    );
    let expected = server
        .client()
        .await
        .rank(&RankRequest::new(&graph, &batch))
        .await
        .unwrap();
    let request = json!({
        "graph": { "graphHash": BASE64_STANDARD.encode(expected.graph_hash.0) }, "batch": tiles(20_000),
    });
    let answered = call(
        server.endpoint(),
        "CostModelService/RankConfigs",
        &request.to_string(),
    )
    .await;
    let ranking: Vec<_> = expected.best.iter().map(|ranked| ranked.config).collect();
    assert_eq!(
        answered.json()["ranking"],
        json!(ranking),
        "{}",
        answered.headers
    );
}
