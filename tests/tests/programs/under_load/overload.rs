//! With ten times as many calls as the server can handle, it continues to work and rejects the rest in time.

use std::process;

use futures::future::join_all;
use hlorank_tests::prelude::*;
use tokio::time::Instant;

use crate::under_load::requests::{PATIENCE, alone, kernels, rank};

const KERNELS: u16 = 16;

/// Tiles per call, about forty milliseconds of a worker.
const TILES: i64 = 400;

/// Duration of each measurement.
const TIME: Duration = Duration::from_secs(2);

/// Deadline of half of the calls, shorter than accepted calls need while the server is full.
const SHORT: Duration = Duration::from_millis(150);

const FLAGS: [&str; 3] = [
    "--embedding-cache-bytes=0",
    "--max-requests=8",
    "--max-call-bytes=67108864",
];

/// The last of them as a number: bytes that all calls may hold.
const CALL_BYTES: usize = 64 << 20;

struct Questions {
    graphs: Vec<Arc<GraphHandle>>,
    tiles: Configurations,
    /// Expected scores by graph hash.
    expected: HashMap<Digest, Vec<u32>>,
}

impl Questions {
    /// Ranks each graph, to learn the expected scores.
    async fn new(client: &Client) -> Self {
        let (graphs, tiles) = (kernels(KERNELS), grid_configurations(TILES));
        let mut expected = HashMap::new();
        for graph in &graphs {
            let ranking = rank(client, graph, &tiles).await;
            expected.insert(ranking.graph_hash, bits(&ranking.scores));
        }
        Self {
            graphs,
            tiles,
            expected,
        }
    }

    /// Returns the calls per second of several clients that each wait for their answers.
    async fn capacity(&self, client: &Client) -> f64 {
        let end = Instant::now() + TIME;
        let calls = (0..4).map(async |first| {
            let mut answered = 0.0;
            for graph in self.graphs.iter().cycle().skip(4 * first) {
                if Instant::now() >= end {
                    break;
                }
                rank(client, graph, &self.tiles).await;
                answered += 1.0;
            }
            answered
        });
        join_all(calls).await.iter().sum::<f64>() / TIME.as_secs_f64()
    }

    /// Caches the graphs, and returns questions about them for one client.
    async fn in_turn(&self, client: &Client) -> Vec<Question> {
        let mut questions = Vec::new();
        for graph in kernels(KERNELS).into_iter().filter_map(Arc::into_inner) {
            client.put_graph(&graph).await.unwrap();
            questions.push(Question {
                graph,
                configurations: self.tiles.clone(),
            });
        }
        questions
    }

    /// Returns the shortest time of a lone call.
    async fn alone(&self, client: &Client) -> Duration {
        let mut fastest = Duration::MAX;
        for graph in &self.graphs[..5] {
            let started = Instant::now();
            rank(client, graph, &self.tiles).await;
            fastest = fastest.min(started.elapsed());
        }
        fastest
    }

    /// Returns whether a call was answered, and asserts that a rejected one says why.
    fn is_answered(&self, answer: &Answer) -> bool {
        match &answer.ranking {
            Ok(ranking) => {
                assert_eq!(bits(&ranking.scores), self.expected[&ranking.graph_hash]);
                true
            }
            Err(error) => {
                assert_refused(error);
                false
            }
        }
    }
}

fn assert_refused(error: &ClientError) {
    // The client enforces its deadline, too.
    if matches!(error, ClientError::Deadline { .. }) {
        return;
    }
    let refusal = error.refusal().unwrap();
    match (refusal.code(), refusal.reason()) {
        (Code::ResourceExhausted, Some("OVERLOADED" | "QUEUE_FULL")) => {
            assert!(refusal.retry_after().is_some(), "{error}");
        }
        (Code::DeadlineExceeded, Some("DEADLINE_EXCEEDED" | "DEADLINE_TOO_SHORT")) => {}
        _ => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_times_the_load_is_answered_or_refused_and_passes() {
    let _alone = alone().await;
    let server = TestServer::start_with(&FLAGS).await;
    let client = server.client_without_retries().await;
    let questions = Questions::new(&client).await;
    let before = questions.alone(&client).await;
    let capacity = questions.capacity(&client).await;
    let resident = resident_bytes(process::id());

    let impatient = Connection {
        timeout: Some(SHORT),
        retries: 0,
        ..Connection::default()
    };
    let impatient = server.client_with(impatient).await;
    let pause = Duration::from_secs_f64(1.0 / (5.0 * capacity));
    let [patient, hasty] = [
        questions.in_turn(&client).await,
        questions.in_turn(&client).await,
    ];
    let loads = [
        Load::start(client.clone(), patient, pause),
        Load::start(impatient, hasty, pause),
    ];
    sleep(TIME).await;
    let most = resident_bytes(process::id());
    let answers = timeout(PATIENCE, join_all(loads.into_iter().map(Load::finish)))
        .await
        .expect("no call hangs");
    let answers: Vec<Answer> = answers.into_iter().flatten().collect();

    let asked = answers.len() as f64;
    assert!(
        asked > 5.0 * capacity * TIME.as_secs_f64(),
        "only {asked} calls at {capacity} a second"
    );
    let answered = answers
        .iter()
        .filter(|answer| questions.is_answered(answer))
        .count() as f64;
    let goodput = answered / TIME.as_secs_f64();
    println!(
        "{goodput:.0} of {:.0} calls a second were answered, of {capacity:.0} without them",
        asked / 2.0
    );
    assert!(
        goodput > capacity / 4.0,
        "{goodput} calls a second, and {capacity} without the others"
    );
    assert!(
        most < resident + with_fragments(CALL_BYTES),
        "from {resident} to {most} bytes"
    );

    server.until_idle().await;
    let after = questions.alone(&client).await;
    assert!(
        after < 5 * before + Duration::from_millis(500),
        "a lone call takes {after:?}, and {before:?} before"
    );
}
