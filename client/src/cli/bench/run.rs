//! Sends calls when they are due.

use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};

use hlorank_client::{Client, trace::TraceWriter};
use tokio::{
    runtime::Handle,
    signal::ctrl_c,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinHandle, spawn_blocking},
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
        // A retry would hide a failure of the server, and its latency would be that of two calls.
        let mut clients = Vec::new();
        for _ in 0..bench.connections {
            clients.push(bench.server.connect_without_retries().await?);
        }
        // The file is created before the load, because the calls would be lost if it cannot be.
        let record = bench.record.as_deref();
        let trace = record.map(TraceWriter::create).transpose()?;
        Ok(Self {
            clients,
            max_in_flight: bench.max_in_flight,
            seed: bench.seed,
            trace,
        })
    }

    /// Sends a load and waits for the answers. Ctrl-C ends it early.
    pub(super) async fn report(self, load: Load) -> Result<BenchReport, CommandError> {
        let plan = self.plan(&load);
        let length = load.length;
        let shared = self.shared(length);
        let (sending, stop) = shared.start(load, self.clients);
        let ended = shared.ended(sending, self.max_in_flight);
        let is_complete = shared.wait(ended, length).await;
        // After Ctrl-C, the thread still sends, and the runtime cannot shut down before it returns.
        drop(stop);
        if let Some(trace) = self.trace {
            shared.record(trace)?;
        }
        let tally = shared.tally();
        // The last answer may come before the planned end. A rate over the shorter time would be
        // too high.
        let elapsed = if is_complete {
            length.max(tally.last)
        } else {
            shared.start.elapsed()
        };
        Ok(BenchReport::of(&tally, plan, elapsed, !is_complete))
    }

    fn plan(&self, load: &Load) -> Plan {
        Plan {
            rate: load.rate(),
            seconds: load.length.as_secs_f64(),
            seed: self.seed,
            connections: self.clients.len(),
            max_in_flight: self.max_in_flight,
        }
    }

    /// Returns the state of a load that starts at this moment.
    fn shared(&self, length: Duration) -> Shared {
        Shared {
            tally: Arc::new(Mutex::new(Tally::new(length))),
            in_flight: Arc::new(Semaphore::new(self.max_in_flight as usize)),
            start: Instant::now(),
            sent: self.trace.is_some().then(Arc::default),
        }
    }
}

impl Shared {
    fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Writes the calls that were sent and their scheduled times to the trace.
    fn record(&self, mut trace: TraceWriter) -> Result<(), CommandError> {
        let sent = self.sent.as_deref().map(|sent| mem::take(&mut *lock(sent)));
        for scheduled in sent.unwrap_or_default() {
            trace.write_call(scheduled.at, &scheduled.call)?;
        }
        Ok(trace.finish()?)
    }

    /// Waits until all calls have ended. Returns false if Ctrl-C ended the wait.
    async fn wait(&self, ended: impl Future<Output = ()>, length: Duration) -> bool {
        let progress = Progress::over_time(length);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let interrupt = ctrl_c();
        tokio::pin!(ended, interrupt);
        loop {
            tokio::select! {
                () = &mut ended => return true,
                _ = &mut interrupt => return false,
                _ = ticks.tick() => self.show(&progress),
            }
        }
    }

    fn show(&self, progress: &Progress) {
        // The lock is released before the bar is drawn, because calls wait for it.
        let (sent, failed) = {
            let tally = self.tally();
            (tally.all.sent, tally.all.failed)
        };
        let message = format!("{sent} sent, {failed} failed");
        progress.show_time(self.start.elapsed(), &message);
    }

    /// Starts to send a load. It ends early if the returned sender is dropped.
    fn start(&self, load: Load, clients: Vec<Client>) -> (JoinHandle<()>, mpsc::Sender<()>) {
        let (stop, stopped) = mpsc::channel();
        let shared = self.clone();
        let runtime = Handle::current();
        let send = move || shared.send(load.schedule(), &clients, &stopped, &runtime);
        (spawn_blocking(send), stop)
    }

    /// Waits until the load is sent and no call is in flight.
    async fn ended(&self, sending: JoinHandle<()>, max_in_flight: u32) {
        sending.await.expect("sending does not panic");
        // Each call holds a permit until it ends, so all permits together are there only after the
        // last call.
        drop(self.in_flight.acquire_many(max_in_flight).await);
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
            if !self.wait_until(scheduled.at, stopped) {
                return;
            }
            // A call beyond the limit is not sent later: the thread would wait, and every call
            // after it would be late.
            match Arc::clone(&self.in_flight).try_acquire_owned() {
                Ok(permit) => {
                    self.count_sent(&scheduled);
                    runtime.spawn(self.clone().call(client.clone(), scheduled, permit));
                }
                Err(_) => self.tally().count_not_sent(&scheduled),
            }
        }
    }

    /// Waits until a call is due. Returns false if the sender of `stopped` is dropped before.
    fn wait_until(&self, at: Duration, stopped: &mpsc::Receiver<()>) -> bool {
        let pause = (self.start + at).saturating_duration_since(Instant::now());
        // Nothing is ever sent on the channel, so this is a sleep that the end of the sender
        // interrupts.
        let received = stopped.recv_timeout(pause);
        matches!(received, Err(mpsc::RecvTimeoutError::Timeout))
    }

    /// Counts a call before it is spawned, so that the tally never has more ended calls than sent
    /// ones.
    fn count_sent(&self, scheduled: &ScheduledCall) {
        self.tally().count_sent(scheduled);
        if let Some(sent) = &self.sent {
            lock(sent).push(scheduled.clone());
        }
    }

    async fn call(self, client: Client, scheduled: ScheduledCall, permit: OwnedSemaphorePermit) {
        self.tally().count_begun(self.since(&scheduled));
        let answer = client.make(&scheduled.call).await;
        // The latency is taken before the lock, which other calls may hold.
        let latency = self.since(&scheduled);
        let error = answer.as_ref().err();
        self.tally().count_ended(&scheduled, latency, error);
        // The permit ends last: when all permits are back, every call is in the tally.
        drop(permit);
    }

    /// Returns the time since a call was due.
    fn since(&self, scheduled: &ScheduledCall) -> Duration {
        (self.start + scheduled.at).elapsed()
    }
}
