//! The threads that do everything that takes processor time, so that the async threads never wait for it.

use std::{
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use tokio::sync::oneshot;
use tracing::Span;

/// A fixed number of worker threads. They take interactive work before bulk work, and within each class in the order it
/// came, whoever it came from: calls take turns by that. A thread whose work panics is replaced. The threads end once
/// the pool is dropped and its work is done.
pub struct ComputePool {
    interactive: Sender<Work>,
    bulk: Sender<Work>,
    workers: usize,
    panics: Arc<AtomicU64>,
    started: Instant,
    /// Milliseconds from the start to the last interactive call; 0 where there was none.
    last_interactive: AtomicU64,
}

/// What work belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Small calls, whose callers wait for them.
    Interactive,
    /// Everything else.
    #[default]
    Bulk,
}

type Work = Box<dyn FnOnce(Worker) + Send>;

/// Where one worker takes its work from.
struct Taking {
    interactive: Receiver<Work>,
    bulk: Receiver<Work>,
    /// Interactive work that was taken since the last bulk work, while that waited.
    in_a_row: u32,
    /// Of the pool's work.
    panics: Arc<AtomicU64>,
}

/// Of so much work that is taken while both classes wait, one is bulk, so that it goes on whatever there is.
const BULK_SHARE: u32 = 8;

/// How long a worker that has done interactive work waits for more before it takes bulk work: a small call needs it
/// several times, with a few microseconds in between, and bulk work takes milliseconds.
const LINGER: Duration = Duration::from_micros(200);

/// For how long bulk work comes in smaller pieces after an interactive call.
const LATELY: Duration = Duration::from_millis(100);

/// Which worker is running, from 0: what picks its own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The work panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a worker failed while computing")]
pub struct WorkerFailed;

/// A result, and how long its work waited for a worker.
pub struct Computed<T> {
    /// What the work returned.
    pub value: T,
    /// From submission to start.
    pub waited: Duration,
}

impl ComputePool {
    /// Starts the threads.
    pub fn new(workers: NonZeroUsize) -> io::Result<Self> {
        let (pool, taking) = Self::without_threads(workers.get());
        for worker in 0..workers.get() {
            taking.clone().start(Worker(worker), format!("compute-{worker}"))?;
        }
        Ok(pool)
    }

    /// Starts one thread that works with the sessions of this worker.
    pub fn background(worker: Worker) -> io::Result<Self> {
        let (pool, taking) = Self::without_threads(1);
        taking.start(worker, "compute-background".to_owned())?;
        Ok(pool)
    }

    fn without_threads(workers: usize) -> (Self, Taking) {
        let ((interactive, taken), (bulk, taken_bulk)) = (unbounded(), unbounded());
        let (started, last_interactive, panics) = (Instant::now(), AtomicU64::new(0), Arc::default());
        let taking =
            Taking { interactive: taken, bulk: taken_bulk, in_a_row: 0, panics: Arc::clone(&panics) };
        (Self { interactive, bulk, workers, panics, started, last_interactive }, taking)
    }

    /// Number of threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// How often work has panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Tasks that wait for a worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.interactive.len() + self.bulk.len()
    }

    /// Takes note of a call that is interactive to its end.
    pub fn note_interactive(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_interactive.store(now.max(1), Ordering::Relaxed);
    }

    /// Whether interactive calls come at present, so that bulk work should come in smaller pieces.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        let last = self.last_interactive.load(Ordering::Relaxed);
        last > 0 && self.started.elapsed() < Duration::from_millis(last) + LATELY
    }

    /// Has a worker run work that nobody waits for.
    pub fn spawn(&self, class: Class, work: impl FnOnce(Worker) + Send + 'static) {
        let queue = match class {
            Class::Interactive => &self.interactive,
            Class::Bulk => &self.bulk,
        };
        // The workers receive for as long as this sender is there.
        let _ = queue.send(Box::new(work));
    }

    /// Runs work on a worker, in the span of the call that it is for. Dropping the future before the work starts cancels
    /// it.
    pub async fn run<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce(Worker) -> T + Send + 'static,
    ) -> Result<Computed<T>, WorkerFailed> {
        let (sender, receiver) = oneshot::channel();
        let (submitted, call) = (Instant::now(), Span::current());
        self.spawn(class, move |worker| {
            let _entered = call.enter();
            if sender.is_closed() {
                return;
            }
            let waited = submitted.elapsed();
            let value = work(worker);
            // An error means that nobody waits any more.
            let _ = sender.send(Computed { value, waited });
        });
        receiver.await.map_err(|_| WorkerFailed)
    }
}

/// Of threads that yield: a tenth of what another thread gets beside it. With the lowest, 19, a seventieth, they do not get
/// anything done on a busy machine.
const NICE: i32 = 10;

/// Gives the calling thread a low priority.
pub fn yield_to_others() {
    // Of the calling thread alone, on Linux.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "a background thread keeps its priority");
    }
}

impl Clone for Taking {
    fn clone(&self) -> Self {
        let (interactive, bulk) = (self.interactive.clone(), self.bulk.clone());
        Self { interactive, bulk, in_a_row: 0, panics: Arc::clone(&self.panics) }
    }
}

impl Taking {
    /// Starts a worker's thread.
    fn start(self, worker: Worker, name: String) -> io::Result<()> {
        thread::Builder::new().name(name.clone()).spawn(move || self.work_through(worker, &name))?;
        Ok(())
    }

    /// Ends with the pool, or with the first panic, so that nothing outlives it that the thread holds for libraries:
    /// another thread takes its place. One that cannot be replaced goes on.
    fn work_through(mut self, worker: Worker, name: &str) {
        let mut last = Class::Bulk;
        while let Some((class, work)) = self.next(last) {
            last = class;
            // The panic is printed already; the one who waits gets `WorkerFailed`.
            if catch_unwind(AssertUnwindSafe(|| work(worker))).is_ok() {
                continue;
            }
            self.panics.fetch_add(1, Ordering::Relaxed);
            match self.clone().start(worker, name.to_owned()) {
                Ok(()) => return tracing::error!("a worker panicked; another takes its place"),
                Err(error) => tracing::error!(%error, "a worker panicked and cannot be replaced; it goes on"),
            }
        }
    }

    /// What to do next, after work of this class; `None` once the pool is dropped and nothing is left.
    fn next(&mut self, last: Class) -> Option<(Class, Work)> {
        if self.in_a_row + 1 < BULK_SHARE
            && let Some(work) = self.waiting_interactive(last)
        {
            self.in_a_row = if self.bulk.is_empty() { 0 } else { self.in_a_row + 1 };
            return Some((Class::Interactive, work));
        }
        self.in_a_row = 0;
        // To whoever waits for a processor, above all the threads that carry calls: bulk work would keep it for all of
        // the scheduler's slice, which is longer.
        thread::yield_now();
        if let Ok(work) = self.bulk.try_recv() {
            return Some((Class::Bulk, work));
        }
        // Whichever comes first. One that is closed has nothing, and nor will the other once it is empty.
        select! {
            recv(self.interactive) -> work => match work {
                Ok(work) => Some((Class::Interactive, work)),
                Err(_) => Some((Class::Bulk, self.bulk.recv().ok()?)),
            },
            recv(self.bulk) -> work => match work {
                Ok(work) => Some((Class::Bulk, work)),
                Err(_) => Some((Class::Interactive, self.interactive.recv().ok()?)),
            },
        }
    }

    fn waiting_interactive(&self, last: Class) -> Option<Work> {
        if last == Class::Bulk || self.bulk.is_empty() {
            return self.interactive.try_recv().ok();
        }
        self.interactive.recv_timeout(LINGER).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn pool() -> ComputePool {
        ComputePool::new(NonZeroUsize::new(2).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn work_runs_on_a_worker() {
        let computed = pool().run(Class::Bulk, |Worker(worker)| worker).await.unwrap();
        assert!(computed.value < 2);
    }

    #[tokio::test]
    async fn work_that_work_spawns_waits_its_turn() {
        let pool = Arc::new(ComputePool::new(NonZeroUsize::MIN).unwrap());
        let order = Arc::new(Mutex::new(Vec::new()));
        let (sender, receiver) = oneshot::channel::<()>();
        let note = |name: &'static str| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(name)
        };
        let (first, spawned, second) = (note("first"), note("spawned by the first"), note("second"));
        let own = Arc::clone(&pool);
        pool.spawn(Class::Bulk, move |_| {
            // The second is there by then.
            let _ = receiver.blocking_recv();
            first();
            own.spawn(Class::Bulk, move |_| spawned());
        });
        pool.spawn(Class::Bulk, move |_| second());
        sender.send(()).unwrap();
        pool.run(Class::Bulk, |_| ()).await.unwrap();
        pool.run(Class::Bulk, |_| ()).await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["first", "second", "spawned by the first"]);
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_work_only() {
        let pool = pool();
        assert!(pool.run(Class::Bulk, |_| panic!("on purpose")).await.is_err());
        assert_eq!(pool.run(Class::Bulk, |_| 7).await.unwrap().value, 7);
    }

    #[tokio::test]
    async fn a_worker_that_panicked_is_counted_and_replaced() {
        let pool = ComputePool::new(NonZeroUsize::MIN).unwrap();
        let who = |Worker(worker)| {
            let thread = thread::current();
            (worker, thread.name().map(str::to_owned), thread.id())
        };
        let before = pool.run(Class::Bulk, who).await.unwrap().value;
        for panics in 1..=3 {
            assert!(pool.run(Class::Interactive, |_| panic!("on purpose")).await.is_err());
            let after = pool.run(Class::Bulk, who).await.unwrap().value;
            assert_eq!((after.0, &after.1), (before.0, &before.1), "with the same sessions");
            assert_ne!(after.2, before.2, "on another thread");
            assert_eq!(pool.panics(), panics);
        }
    }

    #[tokio::test]
    async fn what_replaces_a_background_worker_yields_to_others() {
        let pool = ComputePool::background(Worker(7)).unwrap();
        pool.spawn(Class::Bulk, |_| yield_to_others());
        assert!(pool.run(Class::Bulk, |_| panic!("on purpose")).await.is_err());
        let priority = |worker| (worker, rustix::process::getpriority_process(None).unwrap());
        assert_eq!(pool.run(Class::Bulk, priority).await.unwrap().value, (Worker(7), NICE));
    }

    /// A pool of one worker that is held until the sender is used, and the order in which work was done.
    fn held() -> (ComputePool, oneshot::Sender<()>, Arc<Mutex<Vec<Class>>>) {
        let pool = ComputePool::new(NonZeroUsize::MIN).unwrap();
        let (sender, receiver) = oneshot::channel::<()>();
        pool.spawn(Class::Bulk, move |_| receiver.blocking_recv().unwrap());
        while pool.queued() > 0 {
            thread::yield_now();
        }
        (pool, sender, Arc::default())
    }

    fn note(pool: &ComputePool, class: Class, order: &Arc<Mutex<Vec<Class>>>) {
        let order = Arc::clone(order);
        pool.spawn(class, move |_| order.lock().unwrap().push(class));
    }

    #[tokio::test]
    async fn interactive_work_comes_first_and_leaves_bulk_work_its_share() {
        let (pool, go, order) = held();
        (0..3).for_each(|_| note(&pool, Class::Bulk, &order));
        (0..20).for_each(|_| note(&pool, Class::Interactive, &order));
        go.send(()).unwrap();
        pool.run(Class::Bulk, |_| ()).await.unwrap();
        let order = order.lock().unwrap();
        let bulk: Vec<usize> = (0..order.len()).filter(|&place| order[place] == Class::Bulk).collect();
        assert_eq!(bulk, [7, 15, 22], "{order:?}");
    }

    #[tokio::test]
    async fn what_is_left_is_done_once_the_pool_is_dropped() {
        let (pool, go, order) = held();
        for class in [Class::Bulk, Class::Interactive, Class::Bulk] {
            note(&pool, class, &order);
        }
        drop(pool);
        go.send(()).unwrap();
        while order.lock().unwrap().len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_pool_knows_whether_interactive_calls_come() {
        let pool = pool();
        pool.run(Class::Interactive, |_| ()).await.unwrap();
        assert!(!pool.is_interactive());
        pool.note_interactive();
        assert!(pool.is_interactive());
        tokio::time::sleep(2 * LATELY).await;
        assert!(!pool.is_interactive());
    }
}
