//! If a request allows it, the first configurations are ranked when there is not enough time for all.

use std::fmt::Display;

use hlorank_tests::prelude::*;

use crate::deadlines::request::{
    RUN_TILES, WHOLE_GRAPH, assert_expired, of_tiles, put, whole_graph_server, within,
};

/// Less time than [`MANY_TILES`] take. The server reserves its maximum of this time for the answer.
const ALLOWED: Duration = Duration::from_millis(2500);

/// Number of configurations that are scored at a time.
const SLICE: u32 = 128;

fn partly(hash: Digest, tiles: i64) -> RankConfigsRequest {
    of_tiles(hash, tiles).with_scores().allowing_partial()
}

/// Returns the ranking without timings.
fn ranked(answer: &RankConfigsResponse) -> (&[u32], &[f32], &[f32], u32) {
    (
        &answer.ranking,
        &answer.ranking_scores,
        &answer.scores,
        answer.scored_configs,
    )
}

async fn rank(server: &TestServer, request: RankConfigsRequest) -> RankConfigsResponse {
    let answer = server.patient().rank_configs(request).await;
    answer.unwrap().into_inner()
}

/// Returns an answer that arrives in time, after a few attempts: the server reserves little time for it, in which a
/// busy machine may pause.
async fn in_time<T, E: Display>(ask: impl AsyncFn() -> Result<T, E>) -> T {
    const ATTEMPTS: usize = 3;
    for _ in 1..ATTEMPTS {
        if let Ok(answer) = ask().await {
            return answer;
        }
    }
    ask()
        .await
        .unwrap_or_else(|error| panic!("{ATTEMPTS} times: {error}"))
}

/// Returns the counter of partial rankings.
async fn partial_rankings(server: &TestServer) -> f64 {
    let scrape = server.scrape().await;
    scrape.value("hlorank_partial_rankings_total", &[("model", TILE_MODEL)])
}

#[tokio::test]
async fn time_runs_out_and_the_first_are_ranked() {
    let server = TestServer::start().await;
    let hash = put(&server, &slow_kernel()).await;
    let ask = async || {
        let before = partial_rankings(&server).await;
        let started = Instant::now();
        let request = within(ALLOWED, partly(hash, MANY_TILES));
        let answer = server.patient().rank_configs(request).await?.into_inner();
        let took = started.elapsed();
        assert!(took < 2 * ALLOWED, "{took:?}");
        assert_eq!(partial_rankings(&server).await - before, 1.0);
        Ok::<_, Status>(answer)
    };
    let answer = in_time(ask).await;
    let scored = answer.scored_configs;
    assert!(
        0 < scored && i64::from(scored) < MANY_TILES && scored.is_multiple_of(SLICE),
        "{scored}"
    );
    assert_eq!(answer.reuse.unwrap().configs, u64::from(scored));
    let complete = rank(&server, of_tiles(hash, scored.into()).with_scores()).await;
    assert_eq!(
        ranked(&answer),
        ranked(&complete),
        "as if the others had not been sent"
    );
}

#[tokio::test]
async fn what_was_scored_is_adapted() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&slow_kernel()));
    let tiles = grid_configurations(MANY_TILES);
    let outcomes = run_times([1e-3, 3e-3, 2e-3, 5e-3]);
    let adapt = Adapt::new("test").measured(&grid_configurations(4), &outcomes);
    let request = RankRequest::new(&graph, &tiles)
        .top(3)
        .with_scores()
        .timeout(ALLOWED)
        .allow_partial()
        .adapt(Some(adapt));
    let ranking = in_time(async || client.rank(&request).await).await;
    assert!(ranking.adaptation.as_ref().unwrap().adapted);
    let scored = ranking.scored;
    assert!(0 < scored && scored < tiles.len(), "{scored}");
    assert_eq!(ranking.scores.len(), scored);
    assert!(
        ranking.log_sd.iter().all(|&deviation| deviation > 0.0),
        "{:?}",
        ranking.log_sd
    );
}

#[tokio::test]
async fn all_are_ranked_where_there_is_time() {
    let server = TestServer::start().await;
    let hash = put(&server, &kernel_of(12)).await;
    let request = within(Duration::from_mins(1), partly(hash, 1000));
    let slices = server.patient().rank_configs(request).await;
    let slices = slices.unwrap().into_inner();
    let endless = rank(&server, partly(hash, 1000)).await;
    assert_eq!(slices.scored_configs, 1000);
    assert_eq!(ranked(&slices), ranked(&endless));
    assert_eq!(slices.reuse.unwrap().rows_evaluated, 1000);
    assert_eq!(endless.reuse.unwrap().rows_cached, 1000);
    assert_eq!(partial_rankings(&server).await, 0.0);
}

#[tokio::test]
async fn nothing_is_ranked_where_there_is_no_time_at_all() {
    let server = whole_graph_server().await;
    let hash = put(&server, &kernel_of(40)).await;
    let request = partly(hash, RUN_TILES).with_model(WHOLE_GRAPH);
    let request = within(Duration::from_millis(200), request);
    let expired = server.patient().rank_configs(request).await.unwrap_err();
    assert_expired(&expired);
}

#[tokio::test]
async fn scores_that_depend_on_their_chunk_are_those_of_the_whole() {
    const CROSS_CONFIGURATION: &str = "layout-cross-configuration";
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let case = golden_cases(&fixture("registry").join(CROSS_CONFIGURATION).join("1")).remove(0);
    let count = case.configurations.len();
    let chosen = (0..301).map(|config| config * config % count);
    let repeated = part(&case.configurations, chosen);
    let (client, graph) = (server.client().await, GraphHandle::features(&case.graph));
    let request = || {
        RankRequest::new(&graph, &repeated)
            .model(Some(CROSS_CONFIGURATION.parse().unwrap()))
            .with_scores()
            .timeout(Duration::from_mins(1))
    };
    let whole = client.rank(&request()).await.unwrap();
    let slices = client.rank(&request().allow_partial()).await.unwrap();
    assert_eq!((slices.scored, whole.scored), (301, 301));
    assert_eq!(slices.scores, whole.scores);
    assert_eq!(slices.best, whole.best);
}
