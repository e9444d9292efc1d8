use std::{
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use foldhash::HashMap;
use tokio::sync::oneshot;
use tracing::Span;

use super::watch::{Run, RunWatch, WatchedRun};
use crate::{device::DeviceProfile, runtime::Interrupt};

/// A fixed number of worker threads. They run interactive work before bulk work, and the work of each class in the order
/// of submission, so that calls take turns. A thread whose work panics or hangs is replaced. The threads end when the pool
/// has been dropped and its work is done.
pub struct ComputePool {
    interactive: Sender<Work>,
    bulk: Sender<Work>,
    workers: usize,
    threads: Arc<Threads>,
    started: Instant,
    /// Milliseconds from the start to the last interactive call; 0 if there was none.
    last_interactive: AtomicU64,
}

/// Priority of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Small calls, whose clients wait for the answer.
    Interactive,
    /// Everything else.
    #[default]
    Bulk,
}

type Work = Box<dyn FnOnce(Worker) + Send>;

/// The threads of a pool.
struct Threads {
    queue: WorkQueue,
    watch: Arc<RunWatch>,
    /// The thread of each worker, by the worker's number.
    current: Mutex<HashMap<usize, Thread>>,
    is_background: bool,
}

/// A thread that works as a worker.
#[derive(Clone)]
struct Thread {
    name: String,
    /// Whether another thread has replaced it, because its work hangs.
    left_behind: Arc<AtomicBool>,
}

/// The queues from which one worker takes its work.
struct WorkQueue {
    interactive: Receiver<Work>,
    bulk: Receiver<Work>,
    /// Number of interactive pieces taken since the last bulk piece, while bulk work was queued.
    in_a_row: u32,
    /// Number of panics in the whole pool.
    panics: Arc<AtomicU64>,
    watch: Arc<RunWatch>,
}

/// One in this many pieces of work is bulk while both classes are queued, so that bulk work always makes progress.
const BULK_SHARE: u32 = 8;

/// Time that a worker waits for more interactive work before it takes bulk work. A small call submits several pieces a
/// few microseconds apart, and one piece of bulk work takes milliseconds.
const LINGER: Duration = Duration::from_micros(200);

/// Time after an interactive call during which bulk work comes in smaller pieces.
const INTERACTIVE_PERIOD: Duration = Duration::from_millis(100);

/// Number of a worker, from 0. It selects the worker's own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The work panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a worker failed while computing")]
pub struct WorkerFailed;

/// The result of work.
pub struct Computed<T> {
    /// The value that the work returned.
    pub value: T,
    /// Time from submission to start.
    pub waited: Duration,
}

impl ComputePool {
    /// Starts the threads.
    pub fn new(workers: NonZeroUsize) -> io::Result<Self> {
        let pool = Self::without_threads(workers.get(), RunWatch::start()?, false);
        for worker in 0..workers.get() {
            pool.threads.start(Worker(worker), format!("compute-{worker}"))?;
        }
        Ok(pool)
    }

    /// Starts a pool of one thread that uses the sessions of this worker.
    pub fn background(&self, worker: Worker) -> io::Result<Self> {
        let pool = Self::without_threads(1, Arc::clone(&self.threads.watch), true);
        pool.threads.start(worker, "compute-background".to_owned())?;
        Ok(pool)
    }

    fn without_threads(workers: usize, watch: Arc<RunWatch>, is_background: bool) -> Self {
        let ((interactive, receiver), (bulk, bulk_receiver)) = (unbounded(), unbounded());
        let (started, last_interactive) = (Instant::now(), AtomicU64::new(0));
        let queue = WorkQueue {
            interactive: receiver,
            bulk: bulk_receiver,
            in_a_row: 0,
            panics: Arc::default(),
            watch: Arc::clone(&watch),
        };
        let threads = Arc::new(Threads { queue, watch, current: Mutex::default(), is_background });
        Self { interactive, bulk, workers, threads, started, last_interactive }
    }

    /// Sets the maximum duration of a run of a session, of this pool and of the background pools that share its watch.
    #[must_use]
    pub fn with_max_run(self, max: Duration) -> Self {
        self.threads.watch.set_max_run(max);
        self
    }

    /// What the sessions of its workers run on.
    #[must_use]
    pub fn device(&self) -> &'static DeviceProfile {
        DeviceProfile::CPU
    }

    /// Number of threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Number of times that work has panicked.
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.threads.queue.panics.load(Ordering::Relaxed)
    }

    /// Number of pieces of work that wait for a worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.interactive.len() + self.bulk.len()
    }

    /// Records that an interactive call is in flight now.
    pub fn note_interactive(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_interactive.store(now.max(1), Ordering::Relaxed);
    }

    /// Returns whether there was an interactive call recently, so that bulk work should come in smaller pieces.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        let last = self.last_interactive.load(Ordering::Relaxed);
        last > 0 && self.started.elapsed() < Duration::from_millis(last) + INTERACTIVE_PERIOD
    }

    /// Queues work without waiting for its result.
    pub fn spawn(&self, class: Class, work: impl FnOnce(Worker) + Send + 'static) {
        let queue = match class {
            Class::Interactive => &self.interactive,
            Class::Bulk => &self.bulk,
        };
        // Sending cannot fail: the workers receive as long as this sender exists.
        let _ = queue.send(Box::new(work));
    }

    /// Runs work on a worker, in the span of the calling task. Dropping the future before the work starts cancels the
    /// work.
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
            // An error means that the caller no longer waits.
            let _ = sender.send(Computed { value, waited });
        });
        receiver.await.map_err(|_| WorkerFailed)
    }

    /// Runs a session on a worker, as [`Self::run`] does. If the run hangs, its thread is left behind and this fails.
    /// The caller stops the interrupt when it no longer needs the run.
    pub async fn run_session<T: Send + 'static>(
        &self,
        class: Class,
        interrupt: Arc<Interrupt>,
        run: impl FnOnce(Worker, &Interrupt) -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        self.run_watched(class, interrupt, None, run).await
    }

    /// Runs work on a worker for at most `max`. If it takes longer, its thread is left behind and this fails.
    pub async fn run_within<T: Send + 'static>(
        &self,
        max: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        let interrupt = Interrupt::new(Arc::new(|| ())).map_err(|_| WorkerFailed)?;
        self.run_watched(Class::Bulk, Arc::new(interrupt), Some(max), |_, _| work()).await
    }

    async fn run_watched<T: Send + 'static>(
        &self,
        class: Class,
        interrupt: Arc<Interrupt>,
        max: Option<Duration>,
        run: impl FnOnce(Worker, &Interrupt) -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        let (sender, receiver) = oneshot::channel();
        let (sender, threads, call) =
            (Arc::new(Mutex::new(Some(sender))), Arc::clone(&self.threads), Span::current());
        self.spawn(class, move |worker| {
            let _entered = call.enter();
            let is_needed = |sender: &Mutex<Option<oneshot::Sender<T>>>| {
                lock(sender).as_ref().is_some_and(|sender| !sender.is_closed())
            };
            if !is_needed(&sender) {
                return;
            }
            let (awaited, waiting) = (Arc::clone(&sender), Arc::clone(&sender));
            let run_of_caller = Run {
                interrupt: Arc::clone(&interrupt),
                is_needed: Box::new(move || is_needed(&awaited)),
                abandon: Box::new(move || drop(lock(&waiting).take())),
                max,
                is_background: threads.is_background,
            };
            let watched = threads.watch_run(worker, run_of_caller);
            let value = run(worker, &interrupt);
            drop(watched);
            let sender = lock(&sender).take();
            // An error means that the caller no longer waits.
            let _ = sender.map(|sender| sender.send(value));
        });
        receiver.await.map_err(|_| WorkerFailed)
    }

    /// Watches a run of the calling worker, until the returned value is dropped. The run is stopped if it is not needed
    /// any more. If it hangs, the worker's thread is replaced, and then `abandon` is called.
    pub fn watch_run(
        &self,
        worker: Worker,
        interrupt: Arc<Interrupt>,
        is_needed: impl Fn() -> bool + Send + 'static,
        abandon: impl FnOnce() + Send + 'static,
    ) -> WatchedRun {
        let (is_needed, abandon) = (Box::new(is_needed), Box::new(abandon));
        let is_background = self.threads.is_background;
        self.threads.watch_run(worker, Run { interrupt, is_needed, abandon, max: None, is_background })
    }
}

impl Threads {
    fn start(&self, worker: Worker, name: String) -> io::Result<()> {
        let thread = Thread { name, left_behind: Arc::default() };
        self.current().insert(worker.0, thread.clone());
        self.queue.clone().start(worker, thread)
    }

    /// Starts a thread that has the priority of the one before.
    fn start_again(&self, worker: Worker, thread: Thread) -> io::Result<()> {
        let (queue, is_background) = (self.queue.clone(), self.is_background);
        thread::Builder::new().name(thread.name.clone()).spawn(move || {
            if is_background {
                yield_to_others();
            }
            queue.run(worker, &thread);
        })?;
        Ok(())
    }

    fn watch_run(self: &Arc<Self>, worker: Worker, run: Run) -> WatchedRun {
        let (threads, abandon) = (Arc::clone(self), run.abandon);
        let abandon = Box::new(move || {
            threads.replace(worker);
            abandon();
        });
        self.watch.begin(Run { abandon, ..run })
    }

    /// Leaves the thread of a worker behind, and starts another one.
    fn replace(&self, worker: Worker) {
        let mut current = self.current();
        let Some(before) = current.get(&worker.0).cloned() else { return };
        if !self.watch.leave_behind() {
            tracing::error!("a run hangs, and its thread is not replaced: too many threads hang already");
            return;
        }
        before.left_behind.store(true, Ordering::Release);
        let thread = Thread { name: before.name, left_behind: Arc::default() };
        current.insert(worker.0, thread.clone());
        drop(current);
        match self.start_again(worker, thread) {
            Ok(()) => tracing::error!("a run hangs: its thread was left behind and replaced"),
            Err(error) => tracing::error!(%error, "a run hangs, and its thread cannot be replaced"),
        }
    }

    fn current(&self) -> MutexGuard<'_, HashMap<usize, Thread>> {
        lock(&self.current)
    }
}

/// Locks what no panic leaves inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Niceness of background threads. They get a tenth of the processor time of a normal thread; with the lowest priority,
/// 19, they get a seventieth, and make no progress on a busy machine.
const NICE: i32 = 10;

/// Gives the calling thread a low priority.
pub fn yield_to_others() {
    // On Linux, this changes only the calling thread.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "a background thread keeps its normal priority");
    }
}

impl Clone for WorkQueue {
    fn clone(&self) -> Self {
        let (interactive, bulk) = (self.interactive.clone(), self.bulk.clone());
        let (panics, watch) = (Arc::clone(&self.panics), Arc::clone(&self.watch));
        Self { interactive, bulk, in_a_row: 0, panics, watch }
    }
}

impl WorkQueue {
    /// Starts the thread of a worker.
    fn start(self, worker: Worker, thread: Thread) -> io::Result<()> {
        thread::Builder::new().name(thread.name.clone()).spawn(move || self.run(worker, &thread))?;
        Ok(())
    }

    /// Runs work until the pool is dropped, until the thread is left behind, or until work panics. A new thread then
    /// replaces this one, because libraries may have left broken state in thread-local storage. If no thread can be
    /// started, this one continues.
    fn run(mut self, worker: Worker, thread: &Thread) {
        let mut last = Class::Bulk;
        while let Some((class, work)) = self.next(last) {
            last = class;
            // The panic is printed already, and the caller receives `WorkerFailed`.
            let panicked = catch_unwind(AssertUnwindSafe(|| work(worker))).is_err();
            if thread.left_behind.load(Ordering::Acquire) {
                return self.watch.ended();
            }
            if !panicked {
                continue;
            }
            self.panics.fetch_add(1, Ordering::Relaxed);
            match self.clone().start(worker, thread.clone()) {
                Ok(()) => return tracing::error!("a worker panicked and was replaced"),
                Err(error) => tracing::error!(%error, "a worker panicked and cannot be replaced"),
            }
        }
    }

    /// Returns the next work after work of class `last`; `None` if the pool has been dropped and no work is left.
    fn next(&mut self, last: Class) -> Option<(Class, Work)> {
        if self.in_a_row + 1 < BULK_SHARE
            && let Some(work) = self.next_interactive(last)
        {
            self.in_a_row = if self.bulk.is_empty() { 0 } else { self.in_a_row + 1 };
            return Some((Class::Interactive, work));
        }
        self.in_a_row = 0;
        // Lets waiting threads run first, above all those that carry calls: bulk work would keep the processor for the
        // rest of the scheduler's time slice.
        thread::yield_now();
        if let Ok(work) = self.bulk.try_recv() {
            return Some((Class::Bulk, work));
        }
        // If one queue is closed, so is the other, which may still hold work.
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

    fn next_interactive(&self, last: Class) -> Option<Work> {
        if last == Class::Bulk || self.bulk.is_empty() {
            return self.interactive.try_recv().ok();
        }
        self.interactive.recv_timeout(LINGER).ok()
    }
}

#[cfg(test)]
mod tests {
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
    async fn work_spawned_by_work_is_queued_behind_earlier_work() {
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
            // The second piece is queued by then.
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
    async fn the_replacement_of_a_background_worker_has_its_low_priority() {
        let pool = pool().background(Worker(7)).unwrap();
        pool.spawn(Class::Bulk, |_| yield_to_others());
        assert!(pool.run(Class::Bulk, |_| panic!("on purpose")).await.is_err());
        let priority = |worker| (worker, rustix::process::getpriority_process(None).unwrap());
        assert_eq!(pool.run(Class::Bulk, priority).await.unwrap().value, (Worker(7), NICE));
    }

    /// Returns a pool of one worker that is blocked until the sender is used, and the order in which work was done.
    fn blocked() -> (ComputePool, oneshot::Sender<()>, Arc<Mutex<Vec<Class>>>) {
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
    async fn interactive_work_comes_first_and_bulk_work_keeps_its_share() {
        let (pool, go, order) = blocked();
        (0..3).for_each(|_| note(&pool, Class::Bulk, &order));
        (0..20).for_each(|_| note(&pool, Class::Interactive, &order));
        go.send(()).unwrap();
        pool.run(Class::Bulk, |_| ()).await.unwrap();
        let order = order.lock().unwrap();
        let bulk: Vec<usize> = (0..order.len()).filter(|&place| order[place] == Class::Bulk).collect();
        assert_eq!(bulk, [7, 15, 22], "{order:?}");
    }

    #[tokio::test]
    async fn queued_work_is_done_after_the_pool_is_dropped() {
        let (pool, go, order) = blocked();
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
    async fn a_pool_is_interactive_for_a_while_after_an_interactive_call() {
        let pool = pool();
        pool.run(Class::Interactive, |_| ()).await.unwrap();
        assert!(!pool.is_interactive());
        pool.note_interactive();
        assert!(pool.is_interactive());
        tokio::time::sleep(2 * INTERACTIVE_PERIOD).await;
        assert!(!pool.is_interactive());
    }
}
