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
    /// Where its turns are queued.
    queue: Sender<Work>,
    worker: Worker,
    /// Whether someone waits for the result.
    is_needed: Box<dyn Fn() -> bool>,
    began: Cell<Instant>,
    /// Dropped at the end of a turn, which frees the worker that waits for it. `None` while the thread is the worker.
    turn: RefCell<Option<Sender<()>>>,
}

/// What a computation unwinds with that nobody needs any more.
struct Stopped;

/// Duration of a turn.
const TURN: Duration = Duration::from_millis(1);

impl Turns {
    pub(super) fn new(
        threads: Arc<Threads>,
        queue: Sender<Work>,
        worker: Worker,
        is_needed: impl Fn() -> bool + 'static,
    ) -> Self {
        let (began, turn) = (Cell::new(Instant::now()), RefCell::new(None));
        Self { threads, queue, worker, is_needed: Box::new(is_needed), began, turn }
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
        let _ = self.queue.send(Box::new(next));
        drop(self.turn.take());
        if let Ok(turn) = woken.recv() {
            self.turn.replace(Some(turn));
        }
    }
}
