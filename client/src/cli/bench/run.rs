//! Sends the calls when they are due.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};

use hlorank_client::{Client, trace::TraceWriter};
use tokio::{
    runtime::Handle,
    signal::ctrl_c,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

use super::{
    Bench,
    load::{Due, Load},
    report::{BenchReport, Plan},
    tally::Tally,
};
use crate::cli::{error::CommandError, progress::Progress};

/// Connections to a server, and a load that is about to begin.
pub(super) struct Run {
    clients: Vec<Client>,
    max_in_flight: u32,
    seed: u64,
    trace: Option<TraceWriter>,
}

/// What calls share.
#[derive(Clone)]
struct Shared {
    tally: Arc<Mutex<Tally>>,
    in_flight: Arc<Semaphore>,
    start: Instant,
    /// What was sent, where that is recorded.
    sent: Option<Arc<Mutex<Vec<Due>>>>,
}

/// How often the bar is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// Nothing panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// Connects, and sends every graph once, so that calls go by hash from the first on.
    pub(super) async fn connect(bench: &Bench, load: &Load) -> Result<Self, CommandError> {
        let patient = bench.server.connect().await?;
        for graph in load.graphs() {
            patient.put_graph(&graph).await?;
        }
        let mut clients = Vec::new();
        for _ in 0..bench.connections {
            clients.push(bench.server.connect_without_retries().await?);
        }
        let trace = bench.record.as_deref().map(TraceWriter::create).transpose()?;
        Ok(Self { clients, max_in_flight: bench.max_in_flight, seed: bench.seed, trace })
    }

    /// Sends a load, and waits for the answers. Ctrl-C ends it early.
    pub(super) async fn report(self, load: Load) -> Result<BenchReport, CommandError> {
        let plan = Plan {
            rate: load.rate(),
            seconds: load.length.as_secs_f64(),
            seed: self.seed,
            connections: self.clients.len(),
            max_in_flight: self.max_in_flight,
        };
        let (length, max_in_flight) = (load.length, self.max_in_flight);
        let shared = Shared {
            tally: Arc::new(Mutex::new(Tally::new(length))),
            in_flight: Arc::new(Semaphore::new(max_in_flight as usize)),
            start: Instant::now(),
            sent: self.trace.is_some().then(Arc::default),
        };
        let (stop, stopped) = mpsc::channel();
        let (sender, runtime) = (shared.clone(), Handle::current());
        let clients = self.clients;
        let sending = spawn_blocking(move || sender.send(load.schedule(), &clients, &stopped, &runtime));
        let ended = async {
            sending.await.expect("sending does not panic");
            drop(shared.in_flight.acquire_many(max_in_flight).await);
        };
        let is_whole = shared.until(ended, length).await;
        drop(stop);
        if let Some(trace) = self.trace {
            shared.record(trace)?;
        }
        let tally = shared.tally();
        let elapsed = if is_whole { length.max(tally.last) } else { shared.start.elapsed() };
        Ok(BenchReport::of(&tally, plan, elapsed, !is_whole))
    }
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Writes what was sent, when it was due.
    fn record(&self, mut trace: TraceWriter) -> Result<(), CommandError> {
        for due in self.sent.iter().flat_map(|sent| std::mem::take(&mut *lock(sent))) {
            trace.write_call(due.at, &due.call)?;
        }
        Ok(trace.finish()?)
    }

    /// Waits until everything has ended, or for Ctrl-C; tells whether it was the former.
    async fn until(&self, ended: impl Future<Output = ()>, length: Duration) -> bool {
        let progress = Progress::over_time(length);
        let (mut ticks, interrupt) = (interval(TICK), ctrl_c());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tokio::pin!(ended, interrupt);
        loop {
            tokio::select! {
                () = &mut ended => return true,
                _ = &mut interrupt => return false,
                _ = ticks.tick() => {
                    let (sent, failed) = { let tally = self.tally(); (tally.all.sent, tally.all.failed) };
                    progress.passed(self.start.elapsed(), &format!("{sent} sent, {failed} failed"));
                }
            }
        }
    }

    /// Hands each call to the runtime when it is due, until there are no more, or until it is told to stop. A thread of
    /// its own, whose clock is finer than the runtime's millisecond.
    fn send(
        &self,
        schedule: impl Iterator<Item = Due>,
        clients: &[Client],
        stopped: &mpsc::Receiver<()>,
        runtime: &Handle,
    ) {
        for (due, client) in schedule.zip(clients.iter().cycle()) {
            let pause = (self.start + due.at).saturating_duration_since(Instant::now());
            if !matches!(stopped.recv_timeout(pause), Err(mpsc::RecvTimeoutError::Timeout)) {
                return;
            }
            match Arc::clone(&self.in_flight).try_acquire_owned() {
                Ok(permit) => {
                    self.tally().sent(&due);
                    if let Some(sent) = &self.sent {
                        lock(sent).push(due.clone());
                    }
                    runtime.spawn(self.clone().ask(client.clone(), due, permit));
                }
                Err(_) => self.tally().not_sent(&due),
            }
        }
    }

    async fn ask(self, client: Client, due: Due, permit: OwnedSemaphorePermit) {
        self.tally().begins(self.since(&due));
        let answer = client.make(&due.call).await;
        let took = self.since(&due);
        self.tally().ended(&due, took, answer.as_ref().err());
        drop(permit);
    }

    /// How long ago a call was due.
    fn since(&self, due: &Due) -> Duration {
        (self.start + due.at).elapsed()
    }
}
