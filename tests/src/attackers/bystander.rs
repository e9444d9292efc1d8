//! A well-behaved client beside an attack.

use std::time::Duration;

use hlorank_client::{Client, ClientError, Connection, GraphHandle};
use hlorank_graph::Configurations;

use crate::{Load, Question, kernel_of, tiles};

/// Client that makes small calls at a fixed rate, with a deadline and without retries.
pub struct Bystander {
    load: Load,
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

    /// Stops, waits for the last answer, and asserts that at least this number of calls was made and that every one was answered.
    ///
    /// # Panics
    /// If a call failed, or there were fewer.
    pub async fn assert_served(self, attack: &str, least: usize) {
        let answers = self.load.finish().await;
        let calls = answers.len();
        assert!(calls >= least, "{attack}: {calls} calls show nothing");
        let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
        times.sort_unstable();
        let failures: Vec<ClientError> = answers
            .into_iter()
            .filter_map(|answer| answer.ranking.err())
            .collect();
        println!(
            "{attack}: {calls} calls beside it, p50 {:?}, p99 {:?}, {} failed",
            times[calls / 2],
            times[calls * 99 / 100],
            failures.len()
        );
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
