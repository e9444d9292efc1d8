//! A server process that is attacked, and how it is afterwards.

use hlorank_tests::attackers::{Aim, Attack, Bystander};
use hlorank_tests::prelude::*;
use tokio::sync::{Mutex, MutexGuard};

/// Pause between two calls of the well-behaved client.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum wait for a state of the server, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Server process that is attacked.
pub(crate) struct Attacked {
    pub(crate) server: ServerProcess,
    /// Attacks take turns, because they load the machine and measure memory.
    _turn: MutexGuard<'static, ()>,
}

/// What an attack did.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Resident memory at the highest, beyond that before the attack.
    pub(crate) bytes: usize,
}

/// Attacks are measured one after the other.
static TURN: Mutex<()> = Mutex::const_new(());

impl Attacked {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let turn = TURN.lock().await;
        Self {
            server: ServerProcess::start(flags),
            _turn: turn,
        }
    }

    /// Starts a server whose process may have this many bytes.
    pub(crate) async fn confined(bytes: usize, flags: &[&str]) -> Self {
        let turn = TURN.lock().await;
        let mut server = confined(&program("hlorank-server"), bytes);
        server.args(flags);
        Self {
            server: ServerProcess::run(server),
            _turn: turn,
        }
    }

    /// Bytes in the caches of the server. A graph that both halves of its cache have is held once.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of bytes"
    )]
    pub(crate) async fn cached_bytes(&self) -> usize {
        let scrape = self.scrape().await;
        let bytes = |cache| scrape.value("hlorank_cache_bytes", &[("cache", cache)]);
        let graphs = bytes("graphs_by_hash").max(bytes("graphs_by_source"));
        let others = [
            "embeddings",
            "kernels",
            "segments",
            "learned",
            "other_targets",
        ];
        (graphs + others.map(bytes).iter().sum::<f64>()) as usize
    }

    /// Resident bytes that the documented limits allow: what the server has now, its caches, and with calls also those; and a third
    /// of these for the fragments of the heap.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of bytes"
    )]
    pub(crate) async fn allowed_bytes(&self) -> [usize; 2] {
        let scrape = self.scrape().await;
        let limit = |name| scrape.sum(name, &[]) as usize;
        let calls = limit("hlorank_max_call_bytes");
        let caches = limit("hlorank_cache_max_bytes");
        let resident = self.server.resident_bytes();
        [caches, caches + calls].map(|bytes| resident + with_fragments(bytes))
    }

    pub(crate) fn aim(&self) -> Aim {
        Aim::at_endpoint(&self.server.endpoint)
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.server.endpoint
    }

    pub(crate) async fn scrape(&self) -> Scrape {
        let (status, text) = http_get(self.server.metrics, "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Scrape::parse(&text)
    }

    /// Waits until the metrics satisfy a condition.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Scrape) -> bool) {
        let started = Instant::now();
        while !is_so(&self.scrape().await) {
            assert!(
                started.elapsed() < PATIENCE,
                "after {PATIENCE:?} it is not so that {what}"
            );
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until nothing remains of the attack: no connection, no call, no work.
    pub(crate) async fn until_idle(&self) {
        self.until("nothing remains", |scrape| {
            scrape.value("hlorank_open_connections", &[("listener", "calls")]) == 0.0
                && scrape.value("hlorank_requests_in_progress", &[]) == 0.0
                && scrape.value("hlorank_queued_nodes", &[]) == 0.0
                && scrape.value("hlorank_compute_queue_tasks", &[]) == 0.0
        })
        .await;
    }

    /// Attacks until `is_enough`, while a well-behaved client makes calls. No call of it may fail, and nothing of the
    /// attack may remain.
    pub(crate) async fn endures(
        &self,
        name: &str,
        attack: impl FnOnce() -> Attack,
        is_enough: impl AsyncFn(&Attack),
    ) -> Outcome {
        let warm = answered(&self.scrape().await) + 5.0;
        let bystander = Bystander::start(self.endpoint(), PAUSE).await;
        self.until("the well-behaved client is answered", |scrape| {
            answered(scrape) >= warm
        })
        .await;
        reset_peak(self.server.id());
        let before = self.server.resident_bytes();
        let attack = attack();
        is_enough(&attack).await;
        newcomer(self.endpoint(), name).await;
        sleep(10 * PAUSE).await;
        let bytes = peak_bytes(self.server.id()).saturating_sub(before);
        let (sent, scrape) = (attack.sent(), self.scrape().await);
        println!(
            "{name}: {} connections, {} calls, {} bytes; {} MiB more than before; {} connections and {} requests in progress",
            sent.connections(),
            sent.calls(),
            sent.bytes(),
            bytes >> 20,
            scrape.value("hlorank_open_connections", &[("listener", "calls")]),
            scrape.value("hlorank_requests_in_progress", &[]),
        );
        drop(attack);
        bystander.assert_served(name).await;
        self.until_idle().await;
        Outcome { bytes }
    }
}

/// Runs a program in a process that may have this many bytes.
pub(crate) fn confined(program: &Command, bytes: usize) -> Command {
    let mut confined = Command::new("sh");
    let limit = format!("ulimit -d {} && exec \"$0\" \"$@\"", bytes >> 10);
    confined.arg("-c").arg(limit).arg(program.get_program());
    confined
}

/// Number of calls that the server answered.
fn answered(scrape: &Scrape) -> f64 {
    scrape.sum("hlorank_requests_total", &[("code", "OK")])
}

/// Asserts that a client that connects only now is served.
async fn newcomer(endpoint: &str, name: &str) {
    let newcomer = Bystander::start(endpoint, PAUSE).await;
    sleep(2 * PAUSE).await;
    let seen = newcomer.finish().await;
    assert!(
        seen.failures.is_empty(),
        "{name}: a new client is not served: {}",
        seen.failures[0]
    );
}

/// Waits until the attackers have begun this number of calls.
pub(crate) async fn until_calls(attack: &Attack, calls: u64) {
    until_sent(|| attack.sent().calls() >= calls).await;
}

/// Waits until the attackers have opened this number of connections.
pub(crate) async fn until_connections(attack: &Attack, connections: u64) {
    until_sent(|| attack.sent().connections() >= connections).await;
}

/// Waits until the attackers have written this number of bytes.
pub(crate) async fn until_bytes(attack: &Attack, bytes: u64) {
    until_sent(|| attack.sent().bytes() >= bytes).await;
}

async fn until_sent(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < PATIENCE,
            "the attackers do not come so far in {PATIENCE:?}"
        );
        sleep(Duration::from_millis(10)).await;
    }
}
