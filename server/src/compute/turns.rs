//! Long computations that take turns with other work.
//!
//! A computation starts as a piece of work of a worker. When its turn is over and other work waits, its thread hands the
//! worker over to a new thread, queues its own next turn behind the work that waits, and sleeps. The worker that reaches
//! that turn wakes the thread and waits until the turn is over, so that no more computations run than there are workers.

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, bounded};
use hlorank_graph::pace;

use super::{
    at_once,
    threads::Threads,
    work::{Work, Worker},
};

/// The turns of one computation.
pub(super) struct Turns {
    threads: Arc<Threads>,
    queues: Queues,
    /// Number of turns that it has waited for.
    waited: Cell<u32>,
    worker: Worker,
    /// Whether someone waits for the result.
    is_needed: Box<dyn Fn() -> bool>,
    began: Cell<Instant>,
    /// Dropped at the end of a turn, which frees the worker that waits for it. `None` while the thread is the worker.
    turn: RefCell<Option<Sender<()>>>,
}

/// Where the turns of a computation are queued.
pub(super) struct Queues {
    /// The first ones, as many as a small call may need.
    pub(super) first: Sender<Work>,
    /// All others.
    pub(super) later: Sender<Work>,
}

/// What a computation unwinds with that nobody needs any more.
struct Stopped;

/// Duration of a turn.
const TURN: Duration = Duration::from_millis(1);

/// Number of turns that keep the class of a computation. After them, it is bulk work.
const FIRST_TURNS: u32 = 8;

impl Turns {
    pub(super) fn new(
        threads: Arc<Threads>,
        queues: Queues,
        worker: Worker,
        is_needed: impl Fn() -> bool + 'static,
    ) -> Self {
        Self {
            threads,
            queues,
            waited: Cell::new(0),
            worker,
            is_needed: Box::new(is_needed),
            began: Cell::new(Instant::now()),
            turn: RefCell::new(None),
        }
    }

    /// Runs work whose pauses end turns. Returns nothing if it was stopped, because nobody needs the result any more.
    pub(super) fn run<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(|| pace::paced(move || self.pause(), work)));
        match outcome {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<Stopped>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Ends the turn if it is over, and waits for the next one. Unwinds if nobody needs the result any more.
    fn pause(&self) {
        if self.began.get().elapsed() < TURN {
            return;
        }
        self.check_needed();
        if self.threads.has_work() {
            self.wait_for_turn();
            self.check_needed();
        }
        self.began.set(Instant::now());
    }

    fn next_queue(&self) -> &Sender<Work> {
        let waited = self.waited.get();
        self.waited.set(waited.saturating_add(1));
        if waited < FIRST_TURNS { &self.queues.first } else { &self.queues.later }
    }

    fn check_needed(&self) {
        if !(self.is_needed)() {
            resume_unwind(Box::new(Stopped));
        }
    }

    fn wait_for_turn(&self) {
        if self.turn.borrow().is_none() {
            if !self.threads.hand_over(self.worker) {
                return;
            }
            at_once::end_small_call();
        }
        let (wake, woken) = bounded(1);
        let next = move |_| {
            let (turn, over) = bounded(0);
            if wake.send(turn).is_ok() {
                // Fails once the turn is over, since nothing is sent.
                let _ = over.recv();
            }
        };
        // Neither sending nor receiving fails: the workers receive as long as this sender exists.
        let _ = self.next_queue().send(Box::new(next));
        drop(self.turn.take());
        if let Ok(turn) = woken.recv() {
            self.turn.replace(Some(turn));
        }
    }
}
