//! Scores may depend on a whole batch: it is cut into even chunks, or ordered in several ways whose scores are averaged.

use hlorank_server::model::Permutations;
use hlorank_tests::prelude::*;

use crate::answers::{golden_case, rank_chosen};

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
        let case = golden_case(PERMUTED);
        assert_eq!(case.scores.len(), 12);
        let connection = Connection {
            timeout: Some(PATIENCE),
            ..Connection::default()
        };
        Self {
            client: server.client_with(connection).await,
            server,
            case,
        }
    }

    /// Ranks these configurations of the case.
    async fn rank(&self, model: &str, configs: &[usize]) -> Ranking {
        rank_chosen(&self.client, model, &self.case, configs).await
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
    for sizes in [&[4, 4, 4][..], &[4, 4, 3], &[3, 3], &[5]] {
        let configs: usize = sizes.iter().sum();
        let together = fixture.rank(EVEN, &all()[..configs]).await;
        assert_eq!(rows_evaluated(&together), [configs as u64; 2]);
        let mut start = 0;
        for size in sizes {
            let chunk = start..start + size;
            let alone = fixture.rank(EVEN, &all()[chunk.clone()]).await;
            let scores = &together.scores[chunk.clone()];
            assert_eq!(scores, alone.scores, "{chunk:?} of {configs}");
            start += size;
        }
    }
}

#[tokio::test]
async fn scores_are_the_mean_over_the_orders() {
    let fixture = Fixture::start().await;
    let mut sums = [0.0_f64; 12];
    for number in 0..PERMUTATIONS.count {
        let order = PERMUTATIONS.order(number, 12);
        let scores = fixture.rank(EVEN, &order).await.scores;
        for (&config, score) in order.iter().zip(scores) {
            sums[config] += f64::from(score);
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "scores are single precision"
    )]
    let expected = sums.map(|sum| (sum / f64::from(PERMUTATIONS.count)) as f32);
    let permuted = fixture.rank(PERMUTED, &all()).await;
    assert_eq!(permuted.scores, expected);
    let counts = rows_evaluated(&permuted);
    assert_eq!(counts, [12, 36], "every order costs a pass");
    assert_ne!(permuted.scores, fixture.rank(EVEN, &all()).await.scores);
    let again = fixture.rank(PERMUTED, &all()).await;
    assert_eq!(permuted.scores, again.scores, "the same batch");

    // One chunk is scored once.
    let chunk = fixture.rank(PERMUTED, &all()[..5]).await;
    assert_eq!(rows_evaluated(&chunk), [5, 5]);
    let even = fixture.rank(EVEN, &all()[..5]).await;
    assert_eq!(chunk.scores, even.scores);
}

/// The orders of a batch are many chunks, and a call that has ended needs none of the rest.
#[tokio::test]
async fn a_call_ends_at_its_deadline_between_chunks() {
    const ALLOWED: Duration = Duration::from_millis(100);
    let fixture = Fixture::start().await;
    let (graph, many) = (GraphHandle::features(&fixture.case.graph), vec![0; 6_000]);
    let configurations = fixture.case.configurations.select(&many);
    let request = RankRequest::new(&graph, &configurations).model(Some(PERMUTED.parse().unwrap()));
    // The server has measured no run of the model yet, so it does not know that this takes longer.
    let started = Instant::now();
    let expired = fixture.client.rank(&request.timeout(ALLOWED)).await;
    let expired = expired.unwrap_err();
    assert!(matches!(expired, ClientError::Deadline { .. }), "{expired}");
    fixture.server.until_idle().await;
    let took = started.elapsed();

    let started = Instant::now();
    let whole = fixture.rank(PERMUTED, &many).await;
    assert_eq!(rows_evaluated(&whole), [6_000, 18_000]);
    let whole = started.elapsed();
    assert!(took < whole / 2, "{took:?} of {whole:?}");
}
