//! The same request has the same answer, bit for bit, whatever else the server does.

use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{join, join_all};
use hlorank_tests::prelude::*;

/// Requests per graph, by all clients together.
const REQUESTS: usize = 1000;
const CLIENTS: usize = 4;

fn measured(file: &str) -> MeasuredGraph {
    read_graphs(&fixture("measured").join(file)).remove(0)
}

async fn rank(client: &Client, graph: &GraphHandle, configurations: &Configurations) -> Ranking {
    client
        .rank(&RankRequest::new(graph, configurations).with_scores())
        .await
        .unwrap()
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
    let files = ["layout_random_window_reversed.pb", "tile_kernels.pb"].map(measured);
    let graphs: Vec<_> = files
        .iter()
        .map(|file| (GraphHandle::from_measured(file), configurations(file)))
        .collect();
    let stop = AtomicBool::new(false);
    let ask = async |number: usize| {
        let mut answers = vec![BTreeSet::new(); graphs.len()];
        let mut evaluated = 0;
        for turn in 0..REQUESTS / CLIENTS * graphs.len() {
            let which = (number + turn) % graphs.len();
            let (graph, configurations) = &graphs[which];
            let ranking = rank(&client, graph, configurations).await;
            let bits: Vec<u32> = ranking.scores.iter().map(|score| score.to_bits()).collect();
            answers[which].insert((
                ranking
                    .best
                    .iter()
                    .map(|ranked| ranked.config)
                    .collect::<Vec<_>>(),
                bits,
            ));
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
    let answers = |which: usize| {
        let answers: BTreeSet<_> = asked
            .iter()
            .flat_map(|(answers, _)| &answers[which])
            .collect();
        answers.len()
    };
    let most = (0..graphs.len()).map(answers).max().unwrap();
    assert_eq!(most, 1);
    let evaluated: u64 = asked.iter().map(|(_, evaluated)| evaluated).sum();
    assert!(
        evaluated > 10_000,
        "only {evaluated} rows were evaluated: calls shared nearly all of them"
    );
}

#[tokio::test]
async fn a_score_that_is_not_finite_fails_the_call() {
    let models = Artifacts::copy();
    models.spoil_opcode(SMALL_TILE_MODEL, 119);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let graph = GraphHandle::features(&chain_kernel(&[119], &[8]));
    let tiles = grid_configurations(4);
    let request = || RankRequest::new(&graph, &tiles);
    let client = server.client().await;
    let spoiled = request().model(Some(SMALL_TILE_MODEL.parse().unwrap()));
    let error = client.rank(&spoiled).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code(), refusal.reason()),
        (Code::Internal, Some("MODEL_OUTPUT_INVALID"))
    );
    let message = refusal.message();
    says!(
        message,
        format!("`{SMALL_TILE_MODEL}` gave NaN for configuration 0")
    );
    assert!(client.rank(&request()).await.is_ok(), "other models go on");
}
