//! A failed run of ONNX Runtime fails the call that caused it and no other.

use futures::future::join_all;
use hlorank_tests::prelude::*;

use crate::under_load::requests::{alone, kernels};

const MODEL: &str = SMALL_TILE_MODEL;

/// Above the features of golden cases, below the product of [`TOO_LARGE`].
const LIMIT: f32 = 1e15;
const TOO_LARGE: [i64; 2] = [1 << 30, 1 << 30];

const ROUNDS: i64 = 20;

/// Returns rows that are new in every round. The row `last` makes the run fail, if it is given.
fn batch(round: i64, last: Option<[i64; 2]>) -> Configurations {
    let mut outputs = vec![[round, 1], [round, 2], [round, 3]];
    outputs.extend(last);
    Configurations::Tile(tiles(&outputs))
}

async fn rank(
    client: &Client,
    graph: &GraphHandle,
    tiles: &Configurations,
) -> Result<Ranking, ClientError> {
    let model = Some(MODEL.parse().unwrap());
    let request = RankRequest::new(graph, tiles).model(model);
    client.rank(&request.with_scores()).await
}

fn assert_failed(ranked: Result<Ranking, ClientError>) {
    let error = ranked.unwrap_err();
    assert_eq!(error.code(), Some(Code::Internal), "{error}");
    assert_reason(&error, "MODEL_FAILED");
    says!(error.to_string(), "encoder.onnx failed");
}

fn failed_runs(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_model_failed_runs_total", &[("model", MODEL)])
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beside_one_that_fails_have_their_answers() {
    let _alone = alone().await;
    let models = Artifacts::copy();
    models.fail_above(MODEL, LIMIT);
    // Without a cache, every call evaluates its rows.
    let server =
        TestServer::start_with(&[&models.flag(), "--workers=1", "--embedding-cache-bytes=0"]).await;
    let (client, graphs) = (server.client().await, kernels(6));
    for graph in &graphs {
        client.put_graph(graph).await.unwrap();
    }
    let before = failed_runs(&server.scrape().await);
    assert_eq!(before, 0.0, "golden cases are met");

    let mut found = Vec::new();
    for round in 1..=ROUNDS {
        let (fails, beside) = (batch(round, Some(TOO_LARGE)), batch(round, None));
        let beside = graphs.iter().map(|graph| rank(&client, graph, &beside));
        let (failed, beside) = tokio::join!(rank(&client, &graphs[0], &fails), join_all(beside));
        assert_failed(failed);
        found.extend(
            beside
                .into_iter()
                .map(|ranked| bits(&ranked.unwrap().scores)),
        );
    }
    let scrape = server.scrape().await;
    let runs = failed_runs(&scrape);
    assert!(
        runs > ROUNDS as f64,
        "{runs} runs failed: no call was in one block with others"
    );
    let failed = [("reason", "MODEL_FAILED")];
    assert_eq!(scrape.value("hlorank_errors_total", &failed), ROUNDS as f64);
    assert_eq!(scrape.value("hlorank_worker_panics_total", &[]), 0.0);

    let mut expected = Vec::new();
    for round in 1..=ROUNDS {
        for graph in &graphs {
            let ranked = rank(&client, graph, &batch(round, None)).await;
            expected.push(bits(&ranked.unwrap().scores));
        }
    }
    assert_eq!(found, expected, "as without the calls that failed");
    let mut health = HealthClient::new(server.channel().await);
    let asked = health.check(HealthCheckRequest::default()).await;
    assert_eq!(asked.unwrap().into_inner().status(), ServingStatus::Serving);
}

#[tokio::test]
async fn rows_that_failed_are_not_kept() {
    let _alone = alone().await;
    let models = Artifacts::copy();
    models.fail_above(MODEL, LIMIT);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let (client, graph) = (server.client().await, kernels(1).remove(0));
    for runs in [1.0, 2.0, 3.0] {
        assert_failed(rank(&client, &graph, &batch(1, Some(TOO_LARGE))).await);
        // A lone call is to blame for all of its block.
        assert_eq!(failed_runs(&server.scrape().await), runs);
    }
    rank(&client, &graph, &batch(1, None)).await.unwrap();
}
