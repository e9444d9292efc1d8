//! A server process that is attacked, and how it is afterwards.

use hlorank_tests::attackers::{Aim, Attack, Attacker, Bystander, Sent};
use hlorank_tests::prelude::*;
use tokio::sync::{Mutex, MutexGuard};

/// Pause between two calls of the well-behaved client.
const PAUSE: Duration = Duration::from_millis(50);

/// Calls of the well-behaved client without which it shows nothing.
pub(crate) const ENOUGH_CALLS: usize = 10;

/// Maximum wait for what attackers send, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Server process that is attacked.
pub(crate) struct Attacked {
    pub(crate) server: ServerProcess,
    /// Attacks take turns, because they load the machine and measure memory.
    _turn: MutexGuard<'static, ()>,
}

/// Attacks are measured one after the other.
static TURN: Mutex<()> = Mutex::const_new(());

impl Attacked {
    pub(crate) async fn start(flags: &[&str]) -> Self {
        Self::run(server_program(), flags).await
    }

    /// Starts a server whose process may have this many bytes.
    pub(crate) async fn confined(bytes: usize, flags: &[&str]) -> Self {
        Self::run(confined(&program("hlorank-server"), bytes), flags).await
    }

    async fn run(mut server: Command, flags: &[&str]) -> Self {
        let turn = TURN.lock().await;
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
        let scrape = self.server.scrape().await;
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
        let scrape = self.server.scrape().await;
        let limit = |name| scrape.sum(name, &[]) as usize;
        let calls = limit("hlorank_max_call_bytes");
        let caches = limit("hlorank_cache_max_bytes");
        let resident = self.server.resident_bytes();
        [caches, caches + calls].map(|bytes| resident + with_fragments(bytes))
    }

    pub(crate) fn aim(&self) -> Aim {
        Aim::at(self.server.address().parse().unwrap())
    }

    /// Returns an attacker for single calls.
    pub(crate) fn stranger(&self) -> Attacker {
        Attacker::alone(self.server.address().parse().unwrap())
    }

    /// Attacks until `is_enough`, while a well-behaved client makes calls. No call of it may fail, and nothing of the
    /// attack may remain. Returns the resident memory at the highest, beyond that before the attack.
    pub(crate) async fn endures(
        &self,
        name: &str,
        attack: impl FnOnce() -> Attack,
        is_enough: impl AsyncFn(&Attack),
    ) -> usize {
        let server = &self.server;
        let warm = answered(&server.scrape().await) + 5.0;
        let bystander = Bystander::start(&server.endpoint, PAUSE).await;
        server
            .until_metrics(|scrape| answered(scrape) >= warm)
            .await;
        reset_peak(server.id());
        let before = server.resident_bytes();
        let attack = attack();
        is_enough(&attack).await;
        let newcomer = Bystander::start(&server.endpoint, PAUSE).await;
        sleep(2 * PAUSE).await;
        newcomer
            .assert_served(&format!("{name}, to a new client"), 1)
            .await;
        sleep(10 * PAUSE).await;
        let bytes = peak_bytes(server.id()).saturating_sub(before);
        let (sent, scrape) = (attack.sent(), server.scrape().await);
        println!(
            "{name}: {} connections, {} calls, {} bytes; {} MiB more than before; {} connections and {} requests in progress",
            sent.connections(),
            sent.calls(),
            sent.bytes(),
            bytes >> 20,
            open_connections(&scrape),
            scrape.value("hlorank_requests_in_progress", &[]),
        );
        drop(attack);
        bystander.assert_served(name, ENOUGH_CALLS).await;
        server
            .until_metrics(|scrape| open_connections(scrape) == 0.0)
            .await;
        server.until_idle().await;
        bytes
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

fn open_connections(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_open_connections", &[("listener", "calls")])
}

/// Waits until the attackers have sent enough.
pub(crate) async fn until_sent(attack: &Attack, is_enough: impl Fn(&Sent) -> bool) {
    let started = Instant::now();
    while !is_enough(attack.sent()) {
        assert!(
            started.elapsed() < PATIENCE,
            "the attackers do not come so far in {PATIENCE:?}"
        );
        sleep(Duration::from_millis(10)).await;
    }
}
