//! Scores may depend on a whole batch: it is cut into even chunks, or ordered in several ways whose scores are averaged.

use hlorank_server::model::Permutations;
use hlorank_tests::prelude::*;

/// Model that cuts batches into even chunks of at most five configurations.
const EVEN: &str = "layout-even-chunks";
/// The same model, whose scores are averaged over three orders.
const PERMUTED: &str = "layout-permuted";
const PERMUTATIONS: Permutations = Permutations {
    count: 3,
    seed: 101,
};

/// Longer than any ranking here takes beside other work.
const PATIENCE: Duration = Duration::from_mins(10);

struct Fixture {
    server: TestServer,
    client: Client,
    case: GoldenCase,
}

impl Fixture {
    async fn start() -> Self {
        let server = TestServer::start_with(&[&Artifacts::copy().flag(), "--workers=1"]).await;
        let case = golden_cases(&fixture("registry").join(PERMUTED).join("1")).remove(0);
        assert_eq!(case.scores.len(), 12);
        Self {
            client: server.client().await,
            server,
            case,
        }
    }

    /// Ranks these configurations of the case.
    async fn rank(&self, model: &str, configs: &[usize]) -> Ranking {
        let graph = GraphHandle::features(&self.case.graph);
        let chosen = part(&self.case.configurations, configs.iter().copied());
        let request = RankRequest::new(&graph, &chosen)
            .model(Some(model.parse().unwrap()))
            .timeout(PATIENCE)
            .with_scores();
        self.client
            .rank(&request)
            .await
            .unwrap_or_else(|error| panic!("{model}: {error}"))
    }
}

fn all() -> Vec<usize> {
    (0..12).collect()
}

fn rows_evaluated(ranking: &Ranking) -> [u64; 2] {
    [ranking.reuse.configs, ranking.reuse.rows_evaluated]
}

#[tokio::test]
async fn chunks_are_as_equal_as_can_be() {
    let fixture = Fixture::start().await;
    for (configs, sizes) in [
        (12, vec![4, 4, 4]),
        (11, vec![4, 4, 3]),
        (6, vec![3, 3]),
        (5, vec![5]),
    ] {
        let together = fixture.rank(EVEN, &all()[..configs]).await;
        assert_eq!(rows_evaluated(&together), [configs as u64; 2]);
        let mut start = 0;
        for size in sizes {
            let chunk = start..start + size;
            let alone = fixture.rank(EVEN, &all()[chunk.clone()]).await;
            assert_eq!(
                together.scores[chunk.clone()],
                alone.scores,
                "{chunk:?} of {configs}"
            );
            start += size;
        }
        assert_eq!(start, configs);
    }
}

#[tokio::test]
async fn scores_are_the_mean_over_the_orders() {
    let fixture = Fixture::start().await;
    let mut sums = [0.0_f64; 12];
    for number in 0..PERMUTATIONS.count {
        let order = PERMUTATIONS.order(number, 12);
        let scores = fixture.rank(EVEN, &order).await.scores;
        order
            .iter()
            .zip(scores)
            .for_each(|(&config, score)| sums[config] += f64::from(score));
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "scores are single precision"
    )]
    let expected: Vec<f32> = sums
        .iter()
        .map(|sum| (sum / f64::from(PERMUTATIONS.count)) as f32)
        .collect();
    let permuted = fixture.rank(PERMUTED, &all()).await;
    assert_eq!(permuted.scores, expected);
    assert_eq!(
        rows_evaluated(&permuted),
        [12, 36],
        "every order costs a pass"
    );
    assert_ne!(permuted.scores, fixture.rank(EVEN, &all()).await.scores);
    assert_eq!(
        permuted.scores,
        fixture.rank(PERMUTED, &all()).await.scores,
        "the same batch, the same scores"
    );
}

#[tokio::test]
async fn one_chunk_is_scored_once() {
    let fixture = Fixture::start().await;
    let permuted = fixture.rank(PERMUTED, &all()[..5]).await;
    assert_eq!(rows_evaluated(&permuted), [5, 5]);
    assert_eq!(
        permuted.scores,
        fixture.rank(EVEN, &all()[..5]).await.scores
    );
}

/// The orders of a batch are many chunks, and a call that has ended needs none of the rest.
#[tokio::test]
async fn a_call_ends_at_its_deadline_between_chunks() {
    const ALLOWED: Duration = Duration::from_millis(100);
    let fixture = Fixture::start().await;
    let (graph, many) = (GraphHandle::features(&fixture.case.graph), vec![0; 6_000]);
    let configurations = part(&fixture.case.configurations, many.iter().copied());
    let request = RankRequest::new(&graph, &configurations).model(Some(PERMUTED.parse().unwrap()));
    // The server has measured no run of the model yet, so it does not know that this takes longer.
    let started = Instant::now();
    let expired = fixture
        .client
        .rank(&request.timeout(ALLOWED))
        .await
        .unwrap_err();
    assert!(matches!(expired, ClientError::Deadline { .. }), "{expired}");
    while fixture
        .server
        .scrape()
        .await
        .value("hlorank_queued_nodes", &[])
        > 0.0
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = started.elapsed();

    let started = Instant::now();
    assert_eq!(
        rows_evaluated(&fixture.rank(PERMUTED, &many).await),
        [6_000, 18_000]
    );
    assert!(
        took < started.elapsed() / 2,
        "{took:?} of {:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_version_is_rejected_whose_golden_cases_have_one_chunk() {
    let models = Artifacts::copy();
    for version in models.versions(PERMUTED) {
        models.edit_manifest(&version, |manifest| manifest["chunk_configs"] = 12.into());
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let versions = server.client().await.list_models().await.unwrap();
    let rejected = versions
        .iter()
        .find(|version| version.name == PERMUTED)
        .unwrap();
    assert_eq!(
        rejected.rejection.as_ref().unwrap().reason,
        "GOLDEN_ONE_CHUNK"
    );
}
