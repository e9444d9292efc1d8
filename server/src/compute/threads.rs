use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use foldhash::HashMap;
use parking_lot::Mutex;

use super::{
    queue::WorkQueue,
    watch::{Run, RunWatch, WatchedRun},
    work::{self, Worker},
};

/// The threads of a pool. A thread whose work panics or hangs is replaced.
pub(super) struct Threads {
    queue: WorkQueue,
    pub(super) watch: Arc<RunWatch>,
    panics: AtomicU64,
    started: Instant,
    /// Milliseconds from the start to the last interactive call; 0 if there was none.
    last_interactive: AtomicU64,
    /// The thread of each worker, by the worker's number.
    current: Mutex<HashMap<usize, Thread>>,
    /// Number of computations that run beside the workers, because a step of theirs is too long.
    displaced: AtomicUsize,
    is_background: bool,
}

/// A thread that works as a worker.
#[derive(Clone)]
struct Thread {
    name: String,
    /// Whether another thread has replaced it, because its work hangs.
    left_behind: Arc<AtomicBool>,
    /// Whether another thread has taken its worker over, because its work takes turns.
    handed_over: Arc<AtomicBool>,
}

/// Niceness of background threads. They get a tenth of the processor time of a normal thread; with the lowest priority,
/// 19, they get a seventieth, and make no progress on a busy machine.
pub(super) const NICE: i32 = 10;

/// Time after an interactive call during which others are expected.
pub(super) const INTERACTIVE_PERIOD: Duration = Duration::from_millis(100);

/// Gives the calling thread a low priority.
pub fn yield_to_others() {
    // On Linux, this changes only the calling thread.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "a background thread keeps its normal priority");
    }
}

impl Thread {
    fn named(name: String) -> Self {
        Self {
            name,
            left_behind: Arc::default(),
            handed_over: Arc::default(),
        }
    }
}

impl Threads {
    pub(super) fn new(queue: WorkQueue, watch: Arc<RunWatch>, is_background: bool) -> Arc<Self> {
        Arc::new(Self {
            queue,
            watch,
            panics: AtomicU64::new(0),
            started: Instant::now(),
            last_interactive: AtomicU64::new(0),
            current: Mutex::default(),
            displaced: AtomicUsize::new(0),
            is_background,
        })
    }

    /// Starts the thread of a worker.
    pub(super) fn start(self: &Arc<Self>, worker: Worker, name: String) -> io::Result<()> {
        let thread = Thread::named(name);
        // Known before it runs, so that its first piece of work can be handed over.
        self.current.lock().insert(worker.0, thread.clone());
        self.start_thread(worker, thread, false)
    }

    /// Starts a thread, which has the low priority of the one before if `is_nice`.
    fn start_thread(
        self: &Arc<Self>,
        worker: Worker,
        thread: Thread,
        is_nice: bool,
    ) -> io::Result<()> {
        let threads = Arc::clone(self);
        thread::Builder::new()
            .name(thread.name.clone())
            .spawn(move || {
                if is_nice {
                    yield_to_others();
                }
                threads.work(worker, &thread);
            })?;
        Ok(())
    }

    /// Works until the pool is dropped, until the thread is left behind, or until work panics. A new thread then replaces
    /// this one, because libraries may have left broken state in thread-local storage. If no thread can be started, this
    /// one continues.
    fn work(self: Arc<Self>, worker: Worker, thread: &Thread) {
        let mut queue = self.queue.clone();
        // Beside small calls, lets the threads that carry them run before more bulk work, which would keep the processor
        // for the rest of the scheduler's time slice. Otherwise, other programs would get that time.
        while let Some(work) = queue.next(|| self.is_interactive()) {
            // The panic is printed already, and the caller receives `WorkerFailed`.
            let panicked = catch_unwind(AssertUnwindSafe(|| work(worker))).is_err();
            // With either flag, this thread is not the worker any more, so it needs no replacement
            // even after a panic.
            if thread.left_behind.swap(false, Ordering::AcqRel) {
                return self.watch.ended();
            }
            if thread.handed_over.load(Ordering::Acquire) {
                if panicked {
                    self.count_panic();
                }
                return;
            }
            if !panicked {
                continue;
            }
            self.count_panic();
            // A new thread has the priority of the thread that starts it.
            match self.start_thread(worker, thread.clone(), false) {
                Ok(()) => return tracing::error!("a worker panicked and was replaced"),
                Err(error) => tracing::error!(%error, "a worker panicked and cannot be replaced"),
            }
        }
    }

    /// Counts work that panicked.
    pub(super) fn count_panic(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of times that work has panicked.
    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Records that an interactive call is in flight now.
    pub(super) fn note_interactive(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // 0 stands for none, so a call in the first millisecond counts as one in the second.
        self.last_interactive.store(now.max(1), Ordering::Relaxed);
    }

    /// Returns whether there was an interactive call recently.
    pub(super) fn is_interactive(&self) -> bool {
        let last = self.last_interactive.load(Ordering::Relaxed);
        last > 0 && self.started.elapsed() < Duration::from_millis(last) + INTERACTIVE_PERIOD
    }

    /// Whether work waits for a worker.
    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Starts a thread that takes over the worker of the calling thread, which ends after its work. Returns whether that
    /// succeeded.
    pub(super) fn hand_over(self: &Arc<Self>, worker: Worker) -> bool {
        let mut current = self.current.lock();
        let Some(before) = current.get(&worker.0).cloned() else {
            return false;
        };
        let thread = Thread::named(before.name);
        // A new thread has the priority of the thread that starts it.
        if let Err(error) = self.start_thread(worker, thread.clone(), false) {
            tracing::warn!(%error, "a long computation does not take turns: no thread can be started");
            return false;
        }
        // Only after the new thread has started: otherwise the worker would be lost with this
        // thread.
        before.handed_over.store(true, Ordering::Release);
        current.insert(worker.0, thread);
        true
    }

    /// Takes the right to run beside the workers; returns whether there was one left.
    pub(super) fn displace(&self) -> bool {
        let workers = self.current.lock().len();
        let more = |displaced: usize| (displaced < workers).then_some(displaced + 1);
        self.displaced
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Gives that right back.
    pub(super) fn end_displaced(&self) {
        self.displaced.fetch_sub(1, Ordering::Relaxed);
    }

    /// Watches a run of a worker. If it hangs, the thread is replaced, and then who waits for it is told.
    pub(super) fn watch_run(self: &Arc<Self>, worker: Worker, run: Run) -> WatchedRun {
        let threads = Arc::clone(self);
        let caller = work::caller();
        let abandon = run.abandon;
        let abandon = Box::new(move || {
            // The replacement first, so that a worker is there when the calls that fail queue more.
            threads.replace(worker);
            abandon();
            if let Some(caller) = caller {
                caller.abandon();
            }
        });
        self.watch.begin(Run { abandon, ..run }, self.is_background)
    }

    /// Leaves the thread of a worker behind, and starts another one.
    fn replace(self: &Arc<Self>, worker: Worker) {
        let mut current = self.current.lock();
        let Some(before) = current.get(&worker.0).cloned() else {
            return;
        };
        if !self.watch.leave_behind() {
            tracing::error!(
                "a run hangs, and its thread is not replaced: too many threads hang already"
            );
            return;
        }
        // Before the new thread starts, so that at no time both take work.
        before.left_behind.store(true, Ordering::Release);
        let thread = Thread::named(before.name.clone());
        match self.start_thread(worker, thread.clone(), self.is_background) {
            Ok(()) => {
                current.insert(worker.0, thread);
                tracing::error!("a run hangs: its thread was left behind and replaced");
            }
            Err(error) => {
                // The thread stays the worker, and goes on if its run ends after all.
                if before.left_behind.swap(false, Ordering::AcqRel) {
                    self.watch.ended();
                }
                tracing::error!(%error, "a run hangs, and its thread cannot be replaced");
            }
        }
    }
}
