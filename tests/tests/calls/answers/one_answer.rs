//! The same request has the same answer, bit for bit, whatever else the server does.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{join, join_all};
use hlorank_tests::prelude::*;

/// Requests per graph, by all clients together.
const REQUESTS: usize = 1000;
const CLIENTS: usize = 4;

async fn rank(client: &Client, graph: &GraphHandle, configurations: &Configurations) -> Ranking {
    let request = RankRequest::new(graph, configurations).with_scores();
    client.rank(&request).await.unwrap()
}

/// Ranks parts of the batches until it is stopped, so that blocks always hold different rows.
async fn load(client: &Client, graphs: &[(GraphHandle, &Configurations)], stop: &AtomicBool) {
    for turn in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (graph, configurations) = &graphs[turn % graphs.len()];
        let every = 2 + turn % 3;
        let chosen = (turn % every..configurations.len()).step_by(every);
        rank(client, graph, &part(configurations, chosen)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_one_answer_under_load() {
    // Without a cache, embeddings are evaluated again each time, beside other rows.
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let files = ["layout_random_window_reversed.pb", "tile_kernels.pb"]
        .map(|file| read_graphs(&fixture("measured").join(file)).remove(0));
    let graphs: Vec<_> = files
        .iter()
        .map(|file| (GraphHandle::from_measured(file), configurations(file)))
        .collect();
    let stop = AtomicBool::new(false);
    let ask = async |first: usize| {
        let mut answers = BTreeSet::new();
        let mut evaluated = 0;
        for turn in first..first + REQUESTS / CLIENTS * graphs.len() {
            let which = turn % graphs.len();
            let (graph, configurations) = &graphs[which];
            let ranking = rank(&client, graph, configurations).await;
            answers.insert((which, bits(&ranking.scores)));
            evaluated += ranking.reuse.rows_evaluated;
        }
        (answers, evaluated)
    };
    let asked = async {
        let asked = join_all((0..CLIENTS).map(ask)).await;
        stop.store(true, Ordering::Relaxed);
        asked
    };
    let (asked, ()) = join(asked, load(&client, &graphs, &stop)).await;
    let evaluated: u64 = asked.iter().map(|(_, evaluated)| evaluated).sum();
    assert!(
        evaluated > 10_000,
        "only {evaluated} rows were evaluated: calls shared nearly all of them"
    );
    let answers: BTreeSet<_> = asked.into_iter().flat_map(|(answers, _)| answers).collect();
    assert_eq!(answers.len(), graphs.len(), "one for each graph");
}

#[tokio::test]
async fn a_score_that_is_not_finite_fails_the_call_and_is_counted() {
    let models = Artifacts::copy();
    let spoiled = [SMALL_TILE_MODEL, "tile-whole-graph"];
    for model in spoiled {
        models.spoil_opcode(model, 119);
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let client = server.client().await;
    let graph = GraphHandle::features(&chain_kernel(&[119], &[8]));
    let tiles = grid_configurations(4);
    for model in spoiled {
        let error = rank_by(&client, model, &graph, &tiles).await.unwrap_err();
        assert_reason(&error, "MODEL_OUTPUT_INVALID");
        let words = format!("`{model}` gave NaN for configuration 0");
        says!(error.to_string(), words);
    }
    let scrape = server.scrape().await;
    for model in spoiled {
        let labels = [
            ("method", "RankConfigs"),
            ("model", model),
            ("code", "INTERNAL"),
        ];
        assert_eq!(scrape.value("hlorank_requests_total", &labels), 1.0);
    }
    let invalid = [("reason", "MODEL_OUTPUT_INVALID")];
    assert_eq!(scrape.value("hlorank_errors_total", &invalid), 2.0);
    let ranking = rank_by(&client, TILE_MODEL, &graph, &tiles).await;
    assert!(ranking.is_ok(), "other models go on");
}
