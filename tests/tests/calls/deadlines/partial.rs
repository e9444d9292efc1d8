//! If a request allows it, the first configurations are ranked when there is not enough time for all.

use std::fmt::Display;

use hlorank_tests::prelude::*;

use crate::deadlines::request::{assert_refused, of_tiles, put, within};

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
    server
        .patient()
        .rank_configs(within(Duration::from_mins(1), request))
        .await
        .unwrap()
        .into_inner()
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
        let (mut service, before) = (server.patient(), partial_rankings(&server).await);
        let started = Instant::now();
        let answer = service
            .rank_configs(within(ALLOWED, partly(hash, MANY_TILES)))
            .await?
            .into_inner();
        Ok::<_, Status>((
            answer,
            started.elapsed(),
            partial_rankings(&server).await - before,
        ))
    };
    let (answer, took, counted) = in_time(ask).await;
    let scored = answer.scored_configs;
    assert!(
        0 < scored && i64::from(scored) < MANY_TILES && scored.is_multiple_of(SLICE),
        "{scored}"
    );
    assert_eq!(answer.reuse.unwrap().configs, u64::from(scored));
    assert!(took < 2 * ALLOWED, "{took:?}");
    let complete = rank(&server, of_tiles(hash, scored.into()).with_scores()).await;
    assert_eq!(
        ranked(&answer),
        ranked(&complete),
        "as if the others had not been sent"
    );
    assert_eq!(counted, 1.0);
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
        .allow_partial();
    let request = request.adapt(Some(adapt));
    let ranking = in_time(async || client.rank(&request).await).await;
    assert!(ranking.adaptation.as_ref().unwrap().adapted);
    assert!(
        0 < ranking.scored && ranking.scored < tiles.len(),
        "{}",
        ranking.scored
    );
    assert_eq!(ranking.scores.len(), ranking.scored);
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
    let slices = rank(&server, partly(hash, 1000)).await;
    let endless = server
        .patient()
        .rank_configs(partly(hash, 1000))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(slices.scored_configs, 1000);
    assert_eq!(ranked(&slices), ranked(&endless));
    assert_eq!(slices.reuse.unwrap().rows_evaluated, 1000);
    assert_eq!(endless.reuse.unwrap().rows_cached, 1000);
    assert_eq!(partial_rankings(&server).await, 0.0);
}

#[tokio::test]
async fn nothing_is_ranked_where_there_is_no_time_at_all() {
    const WHOLE_GRAPH: &str = "tile-whole-graph";
    // All tiles are one run, which takes a second or more.
    const TILES: i64 = 45_000;
    let models = Artifacts::copy();
    for version in models.versions(WHOLE_GRAPH) {
        models.edit_manifest(&version, |manifest| {
            manifest["chunk_configs"] = TILES.into();
        });
    }
    let server = TestServer::start_with(&[&models.flag(), "--workers=1"]).await;
    let hash = put(&server, &kernel_of(40)).await;
    let request = within(
        Duration::from_millis(200),
        partly(hash, TILES).with_model(WHOLE_GRAPH),
    );
    let expired = server.patient().rank_configs(request).await.unwrap_err();
    assert_refused(&expired, "DEADLINE_EXCEEDED");
}

#[tokio::test]
async fn scores_that_depend_on_their_chunk_are_those_of_the_whole() {
    const CROSS_CONFIGURATION: &str = "layout-cross-configuration";
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let case = golden_cases(&fixture("registry").join(CROSS_CONFIGURATION).join("1")).remove(0);
    let count = case.configurations.len();
    let repeated = part(
        &case.configurations,
        (0..301).map(|config| config * config % count),
    );
    let (client, graph): (Client, _) = (server.client().await, GraphHandle::features(&case.graph));
    let request = |configurations: &Configurations| {
        let model = Some(CROSS_CONFIGURATION.parse().unwrap());
        RankRequest::new(&graph, configurations)
            .model(model)
            .with_scores()
            .timeout(Duration::from_mins(1))
    };
    let whole = client.rank(&request(&repeated)).await.unwrap();
    let slices = client
        .rank(&request(&repeated).allow_partial())
        .await
        .unwrap();
    assert_eq!((slices.scored, whole.scored), (301, 301));
    assert_eq!(slices.scores, whole.scores);
    assert_eq!(slices.best, whole.best);
}

#[tokio::test]
async fn the_client_library_tells_how_many_were_scored() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&slow_kernel()));
    let large = grid_configurations(MANY_TILES);
    client.put_graph(&graph).await.unwrap();
    let request = RankRequest::new(&graph, &large)
        .with_scores()
        .timeout(ALLOWED)
        .allow_partial();
    let ranking = in_time(async || client.rank(&request).await).await;
    assert!(
        (1..large.len()).contains(&ranking.scored),
        "{}",
        ranking.scored
    );
    assert_eq!(
        (ranking.best.len(), ranking.scores.len()),
        (ranking.scored, ranking.scored)
    );
}
