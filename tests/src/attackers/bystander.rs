//! A well-behaved client beside an attack.

use std::time::Duration;

use hlorank_client::{Client, ClientError, Connection, GraphHandle};
use hlorank_graph::Configurations;

use crate::{Load, Question, kernel_of, tiles};

/// Client that makes small calls at a fixed rate, with a deadline and without retries.
pub struct Bystander {
    load: Load,
}

/// What a well-behaved client saw.
#[derive(Debug)]
pub struct Seen {
    /// Number of calls.
    pub calls: usize,
    /// Median of the time of the calls, from when each was due.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Errors of the calls that failed.
    pub failures: Vec<ClientError>,
}

/// Maximum time of a call.
const DEADLINE: Duration = Duration::from_secs(10);

/// Nodes of the kernel, and tiles of it in each call.
const NODES: u8 = 12;
const TILES: i64 = 10;

/// Number of different calls. Rows that were evaluated before are not evaluated again.
const CALLS: i64 = 6_000;

impl Bystander {
    /// Connects, and makes a call every `pause` until it is stopped.
    ///
    /// # Panics
    /// If the server does not accept the connection.
    pub async fn start(endpoint: &str, pause: Duration) -> Self {
        let connection = Connection {
            timeout: Some(DEADLINE),
            retries: 0,
            ..Connection::default()
        };
        let client = Client::connect(endpoint, connection)
            .await
            .expect("the server accepts connections");
        Self {
            load: Load::start(client, questions(), pause),
        }
    }

    /// Stops, and waits for the last answer.
    ///
    /// # Panics
    /// If there was no call.
    pub async fn finish(self) -> Seen {
        let answers = self.load.finish().await;
        let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
        times.sort_unstable();
        let calls = times.len();
        assert!(calls > 0, "no call was made");
        let failures = answers
            .into_iter()
            .filter_map(|answer| answer.ranking.err())
            .collect();
        Seen {
            calls,
            p50: times[calls / 2],
            p99: times[calls * 99 / 100],
            failures,
        }
    }

    /// Stops, and asserts that every call was answered.
    ///
    /// # Panics
    /// If a call failed, or there were too few to show anything.
    pub async fn assert_served(self, attack: &str) {
        let seen = self.finish().await;
        let Seen {
            calls,
            p50,
            p99,
            failures,
        } = &seen;
        println!(
            "{attack}: {calls} calls beside it, p50 {p50:?}, p99 {p99:?}, {} failed",
            failures.len()
        );
        assert!(*calls >= 10, "{attack}: {calls} calls show nothing");
        assert!(
            failures.is_empty(),
            "{attack}: {} of {calls} calls failed: {}",
            failures.len(),
            failures[0]
        );
    }
}

/// Returns requests with tiles of their own, as a search sends them.
fn questions() -> Vec<Question> {
    let kernel = kernel_of(NODES);
    let question = |call: i64| {
        let outputs: Vec<[i64; 2]> = (0..TILES).map(|tile| [1 + tile, 1 + call]).collect();
        Question {
            graph: GraphHandle::features(&kernel),
            configurations: Configurations::Tile(tiles(&outputs)),
        }
    };
    (0..CALLS).map(question).collect()
}
