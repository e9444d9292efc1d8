//! Sends calls when they are due.

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
    arguments::Bench,
    load::{Load, ScheduledCall},
    report::{BenchReport, Plan},
    tally::Tally,
};
use crate::cli::{error::CommandError, progress::Progress};

/// Connections to a server, and the settings of a load.
pub(super) struct Run {
    clients: Vec<Client>,
    max_in_flight: u32,
    seed: u64,
    trace: Option<TraceWriter>,
}

/// The state that calls share.
#[derive(Clone)]
struct Shared {
    tally: Arc<Mutex<Tally>>,
    in_flight: Arc<Semaphore>,
    start: Instant,
    /// Calls that were sent, if they are recorded.
    sent: Option<Arc<Mutex<Vec<ScheduledCall>>>>,
}

/// Interval between updates of the progress bar.
const TICK: Duration = Duration::from_millis(200);

/// Locks a mutex. No thread panics while it holds a lock, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    /// Connects, and sends every graph once, so that all calls send only the hash of their graph.
    pub(super) async fn connect(bench: &Bench, load: &Load) -> Result<Self, CommandError> {
        let retrying = bench.server.connect().await?;
        for graph in load.graphs() {
            retrying.put_graph(&graph).await?;
        }
        let mut clients = Vec::new();
        for _ in 0..bench.connections {
            clients.push(bench.server.connect_without_retries().await?);
        }
        let trace = bench
            .record
            .as_deref()
            .map(TraceWriter::create)
            .transpose()?;
        Ok(Self {
            clients,
            max_in_flight: bench.max_in_flight,
            seed: bench.seed,
            trace,
        })
    }

    /// Sends a load and waits for the answers. Ctrl-C ends it early.
    pub(super) async fn report(self, load: Load) -> Result<BenchReport, CommandError> {
        let plan = Plan {
            rate: load.rate(),
            seconds: load.length.as_secs_f64(),
            seed: self.seed,
            connections: self.clients.len(),
            max_in_flight: self.max_in_flight,
        };
        let length = load.length;
        let max_in_flight = self.max_in_flight;
        let shared = Shared {
            tally: Arc::new(Mutex::new(Tally::new(length))),
            in_flight: Arc::new(Semaphore::new(max_in_flight as usize)),
            start: Instant::now(),
            sent: self.trace.is_some().then(Arc::default),
        };
        let (stop, stopped) = mpsc::channel();
        let sender = shared.clone();
        let runtime = Handle::current();
        let clients = self.clients;
        let send = move || sender.send(load.schedule(), &clients, &stopped, &runtime);
        let sending = spawn_blocking(send);
        let ended = async {
            sending.await.expect("sending does not panic");
            drop(shared.in_flight.acquire_many(max_in_flight).await);
        };
        let is_complete = shared.wait(ended, length).await;
        drop(stop);
        if let Some(trace) = self.trace {
            shared.record(trace)?;
        }
        let tally = shared.tally();
        let elapsed = if is_complete {
            length.max(tally.last)
        } else {
            shared.start.elapsed()
        };
        Ok(BenchReport::of(&tally, plan, elapsed, !is_complete))
    }
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Writes the calls that were sent and their scheduled times to the trace.
    fn record(&self, mut trace: TraceWriter) -> Result<(), CommandError> {
        for scheduled in self
            .sent
            .iter()
            .flat_map(|sent| std::mem::take(&mut *lock(sent)))
        {
            trace.write_call(scheduled.at, &scheduled.call)?;
        }
        Ok(trace.finish()?)
    }

    /// Waits until all calls have ended. Returns false if Ctrl-C ended the wait.
    async fn wait(&self, ended: impl Future<Output = ()>, length: Duration) -> bool {
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
                    progress.show_time(self.start.elapsed(), &format!("{sent} sent, {failed} failed"));
                }
            }
        }
    }

    /// Spawns each call when it is due, until all are spawned or the sender of `stopped` is dropped. Runs on a thread
    /// of its own, because the timer of the runtime has a resolution of a millisecond.
    fn send(
        &self,
        schedule: impl Iterator<Item = ScheduledCall>,
        clients: &[Client],
        stopped: &mpsc::Receiver<()>,
        runtime: &Handle,
    ) {
        for (scheduled, client) in schedule.zip(clients.iter().cycle()) {
            let pause = (self.start + scheduled.at).saturating_duration_since(Instant::now());
            if !matches!(
                stopped.recv_timeout(pause),
                Err(mpsc::RecvTimeoutError::Timeout)
            ) {
                return;
            }
            match Arc::clone(&self.in_flight).try_acquire_owned() {
                Ok(permit) => {
                    self.tally().count_sent(&scheduled);
                    if let Some(sent) = &self.sent {
                        lock(sent).push(scheduled.clone());
                    }
                    runtime.spawn(self.clone().call(client.clone(), scheduled, permit));
                }
                Err(_) => self.tally().count_not_sent(&scheduled),
            }
        }
    }

    async fn call(self, client: Client, scheduled: ScheduledCall, permit: OwnedSemaphorePermit) {
        self.tally().count_begun(self.since(&scheduled));
        let answer = client.make(&scheduled.call).await;
        let latency = self.since(&scheduled);
        self.tally()
            .count_ended(&scheduled, latency, answer.as_ref().err());
        drop(permit);
    }

    /// Returns the time since a call was due.
    fn since(&self, scheduled: &ScheduledCall) -> Duration {
        (self.start + scheduled.at).elapsed()
    }
}
