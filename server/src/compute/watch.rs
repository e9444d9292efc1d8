use std::{
    io,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use foldhash::{HashMap, HashMapExt};
use parking_lot::Mutex;

use crate::runtime::Interrupt;

/// Ends runs of sessions that nobody needs any more or that take too long. A run that does not end although it was
/// stopped is abandoned: its thread is left behind. Computations that take turns lose their place if they do not pause.
pub struct RunWatch {
    /// Maximum duration of a run in milliseconds.
    max_run: AtomicU64,
    runs: Mutex<WatchedRuns>,
    /// Computations that take turns, and some that have ended since the last check.
    turns: Mutex<Vec<Weak<dyn TakesTurns>>>,
    /// Number of threads that were left behind and have not ended yet.
    left_behind: AtomicUsize,
}

struct WatchedRuns {
    next: u64,
    active: HashMap<u64, Active>,
}

/// A computation that takes turns.
pub(super) trait TakesTurns: Send + Sync {
    /// Leaves its place to others if a step of it is too long.
    fn check(&self);
}

/// A run on a thread of a pool.
pub(super) struct Run {
    pub(super) interrupt: Arc<Interrupt>,
    pub(super) is_needed: Box<dyn Fn() -> bool + Send>,
    /// Replaces the thread, and fails what waits for the run.
    pub(super) abandon: Box<dyn FnOnce() + Send>,
    /// Maximum duration; by default that of the watch.
    pub(super) max: Option<Duration>,
}

struct Active {
    run: Run,
    /// Whether the thread is replaced soon after nobody needs the run, rather than at the maximum duration.
    is_background: bool,
    started: Instant,
    /// When the run was stopped.
    stopped: Option<Instant>,
}

/// A run that is watched until this is dropped.
pub struct WatchedRun {
    watch: Arc<RunWatch>,
    number: u64,
}

/// Maximum duration of a run unless it is set.
const MAX_RUN: Duration = Duration::from_secs(30);

/// How long a run may take to end after it was stopped.
const GRACE: Duration = Duration::from_secs(5);

/// Duration of a run until it is checked. Nearly all runs end before.
const FIRST_CHECK: Duration = Duration::from_millis(100);

/// Interval at which runs and turns are checked.
const INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of threads that are left behind at a time.
const MAX_LEFT_BEHIND: usize = 8;

impl RunWatch {
    /// Starts a thread that watches runs until this is dropped.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let watch = Arc::new(Self {
            max_run: AtomicU64::new(millis(MAX_RUN)),
            runs: Mutex::new(WatchedRuns {
                next: 0,
                active: HashMap::new(),
            }),
            turns: Mutex::default(),
            left_behind: AtomicUsize::new(0),
        });
        let watched = Arc::downgrade(&watch);
        thread::Builder::new()
            .name("run-watch".to_owned())
            .spawn(move || check_until_dropped(&watched))?;
        Ok(watch)
    }

    /// Sets the maximum duration of a run.
    pub(super) fn set_max_run(&self, max: Duration) {
        self.max_run.store(millis(max), Ordering::Relaxed);
    }

    pub(super) fn begin(self: &Arc<Self>, run: Run, is_background: bool) -> WatchedRun {
        let active = Active {
            run,
            is_background,
            started: Instant::now(),
            stopped: None,
        };
        let mut runs = self.runs.lock();
        let number = runs.next;
        runs.next += 1;
        runs.active.insert(number, active);
        drop(runs);
        WatchedRun {
            watch: Arc::clone(self),
            number,
        }
    }

    /// Watches a computation that takes turns, until it is dropped.
    pub(super) fn watch_turns(&self, computation: Weak<dyn TakesTurns>) {
        self.turns.lock().push(computation);
    }

    /// Takes the right to leave a thread behind; returns whether there is one left.
    pub(super) fn leave_behind(&self) -> bool {
        let more = |left: usize| (left < MAX_LEFT_BEHIND).then_some(left + 1);
        self.left_behind
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Gives that right back, when the thread has ended.
    pub(super) fn ended(&self) {
        self.left_behind.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets the computations leave their places, and forgets those that have ended.
    fn check_turns(&self) {
        let mut running = Vec::new();
        self.turns.lock().retain(|computation| {
            let found = computation.upgrade();
            let is_running = found.is_some();
            running.extend(found);
            is_running
        });
        // Without the lock, because a check may start a thread.
        for computation in running {
            computation.check();
        }
    }

    /// Stops the runs that should end, and abandons those that do not.
    fn check(&self) {
        let max = Duration::from_millis(self.max_run.load(Ordering::Relaxed));
        let abandoned: Vec<Active> = {
            let mut runs = self.runs.lock();
            let hang = runs.active.extract_if(|_, active| active.hangs(max));
            hang.map(|(_, active)| active).collect()
        };
        // Without the lock, because this starts threads and drops what calls hold.
        for Active { run, .. } in abandoned {
            (run.abandon)();
            run.interrupt.abandoned();
        }
    }
}

impl Active {
    /// Stops the run if it should end. Returns whether it should have ended already.
    fn hangs(&mut self, max: Duration) -> bool {
        let took = self.started.elapsed();
        let max = self.run.max.unwrap_or(max);
        if took >= max {
            self.run.interrupt.expire();
        } else if took >= FIRST_CHECK && !(self.run.is_needed)() {
            self.run.interrupt.stop();
        } else {
            return false;
        }
        // A stopped run ends at its next operator, which can be long. A background pool does not
        // wait for that until the maximum duration, since it has no other thread.
        let stopped = *self.stopped.get_or_insert_with(Instant::now);
        stopped.elapsed() >= GRACE && (took >= max + GRACE || self.is_background)
    }
}

impl Drop for WatchedRun {
    fn drop(&mut self) {
        let ended = self.watch.runs.lock().active.remove(&self.number);
        // Dropped after the lock is released, since it may free much memory.
        drop(ended);
    }
}

fn check_until_dropped(watch: &Weak<RunWatch>) {
    while let Some(watch) = watch.upgrade() {
        watch.check();
        watch.check_turns();
        // Not held during the sleep, so that the last pool can drop it.
        drop(watch);
        thread::sleep(INTERVAL);
    }
}

fn millis(duration: Duration) -> u64 {
    duration.as_millis().try_into().unwrap_or(u64::MAX)
}
