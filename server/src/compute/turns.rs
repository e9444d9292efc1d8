//! Long computations that take turns with other work.
//!
//! A computation starts as a piece of work of a worker. When its turn is over and other work waits, its thread hands the
//! worker over to a new thread, queues its own next turn behind the work that waits, and sleeps. The worker that reaches
//! that turn wakes the thread and waits until the turn is over, so that no more computations run than there are workers.
//!
//! A step that is much longer than a turn, such as the conversion of a large message from JSON, does not hold up others: the
//! watch takes its worker away, and the operating system divides the processor until the next pause.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, bounded};
use hlorank_graph::pace;
use parking_lot::Mutex;

use super::{
    threads::Threads,
    watch::TakesTurns,
    work::{self, Work, Worker},
};

/// The turns of one computation.
pub(super) struct Turns {
    holder: Arc<TurnHolder>,
    queues: Queues,
    /// Number of turns that it has waited for.
    waited: Cell<u32>,
    /// Whether someone waits for the result.
    is_needed: Box<dyn Fn() -> bool>,
    began: Cell<Instant>,
}

/// Where the turns of a computation are queued.
pub(super) struct Queues {
    /// The first ones, as many as a small call may need.
    pub(super) first: Sender<Work>,
    /// All others.
    pub(super) later: Sender<Work>,
}

/// A computation as the watch sees it.
struct TurnHolder {
    threads: Arc<Threads>,
    worker: Worker,
    held: Mutex<HeldTurn>,
}

/// What a computation keeps from other work.
struct HeldTurn {
    since: Instant,
    place: TurnPlace,
}

enum TurnPlace {
    /// Its thread is the worker.
    Worker,
    /// The worker waits until this is dropped.
    Turn(Sender<()>),
    /// Its place was taken away while it ran.
    Displaced,
    /// It waits for its turn, or has ended.
    None,
}

/// What a computation unwinds with that nobody needs any more.
struct StopPayload;

/// Duration of a turn.
const TURN: Duration = Duration::from_millis(1);

/// Duration of a step after which other work no longer waits for it.
const LONGEST_STEP: Duration = Duration::from_millis(50);

/// Number of turns that keep the class of a computation. After them, it is bulk work.
const FIRST_TURNS: u32 = 8;

impl Turns {
    pub(super) fn new(
        threads: Arc<Threads>,
        queues: Queues,
        worker: Worker,
        is_needed: impl Fn() -> bool + 'static,
    ) -> Self {
        let now = Instant::now();
        let held = Mutex::new(HeldTurn {
            since: now,
            place: TurnPlace::Worker,
        });
        Self {
            holder: Arc::new(TurnHolder {
                threads,
                worker,
                held,
            }),
            queues,
            waited: Cell::new(0),
            is_needed: Box::new(is_needed),
            began: Cell::new(now),
        }
    }

    /// Runs work whose pauses end turns. Returns nothing if it was stopped, because nobody needs the result any more.
    pub(super) fn run<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let holder = Arc::clone(&self.holder);
        let weak = Arc::downgrade(&holder);
        holder.threads.watch.watch_turns(weak);
        // The place is left even after a panic, so that no worker waits for a computation that
        // ended.
        let outcome = catch_unwind(AssertUnwindSafe(|| pace::paced(move || self.pause(), work)));
        // The thread is the worker afterwards only if the watch has not taken it away.
        holder.give_up();
        match outcome {
            Ok(value) => Some(value),
            Err(payload) if payload.is::<StopPayload>() => None,
            Err(payload) => resume_unwind(payload),
        }
    }

    /// Ends the turn if it is over, and waits for the next one. Unwinds if nobody needs the result any more.
    fn pause(&self) {
        if self.began.get().elapsed() < TURN {
            return;
        }
        self.check_needed();
        if matches!(self.holder.held.lock().place, TurnPlace::Displaced)
            || self.holder.threads.has_work()
        {
            self.wait_for_turn();
            self.check_needed();
        } else {
            // Nobody waits, so the next turn follows at once. The watch measures its steps anew.
            self.holder.held.lock().since = Instant::now();
        }
        self.began.set(Instant::now());
    }

    fn check_needed(&self) {
        if !(self.is_needed)() {
            resume_unwind(Box::new(StopPayload));
        }
    }

    fn wait_for_turn(&self) {
        if !self.holder.hand_over_worker() {
            return;
        }
        work::end_small_call();
        let (wake, woken) = bounded(1);
        // What a worker does when the turn comes: it hands the computation one end of a channel,
        // and waits until that end is dropped.
        let next = move |_| {
            let (turn, over) = bounded(0);
            if wake.send(turn).is_ok() {
                // Fails once the turn is over, since nothing is sent.
                let _ = over.recv();
            }
        };
        // Neither sending nor receiving fails: the workers receive as long as this sender exists.
        // Queued before the place is left, so that what comes meanwhile is behind it.
        let waited = self.waited.get();
        self.waited.set(waited.saturating_add(1));
        let queue = if waited < FIRST_TURNS {
            &self.queues.first
        } else {
            &self.queues.later
        };
        let _ = queue.send(Box::new(next));
        self.holder.give_up();
        if let Ok(turn) = woken.recv() {
            *self.holder.held.lock() = HeldTurn {
                since: Instant::now(),
                place: TurnPlace::Turn(turn),
            };
        }
    }
}

impl TakesTurns for TurnHolder {
    /// Takes the place of a computation away whose step is too long, if other work waits. No more computations run beside
    /// the workers than there are workers, so that many of them do not take the processor from small calls.
    fn check(&self) {
        let mut held = self.held.lock();
        // A turn counts from its beginning or its last pause, whichever was later.
        let is_late = held.since.elapsed() >= LONGEST_STEP && self.threads.has_work();
        if !is_late
            || matches!(held.place, TurnPlace::Displaced | TurnPlace::None)
            || !self.threads.displace()
        {
            return;
        }
        if matches!(held.place, TurnPlace::Worker) && !self.threads.hand_over(self.worker) {
            // Without a thread to hand the worker to, everything stays as it was.
            self.threads.end_displaced();
            return;
        }
        // Ends the turn that a worker waits for.
        held.place = TurnPlace::Displaced;
    }
}

impl TurnHolder {
    /// Hands over the worker that the thread is. Returns whether the thread is none now.
    fn hand_over_worker(&self) -> bool {
        let mut held = self.held.lock();
        if !matches!(held.place, TurnPlace::Worker) {
            return true;
        }
        let is_none = self.threads.hand_over(self.worker);
        if is_none {
            held.place = TurnPlace::None;
        }
        is_none
    }

    /// Leaves its place to others.
    fn give_up(&self) {
        match std::mem::replace(&mut self.held.lock().place, TurnPlace::None) {
            TurnPlace::Turn(worker_waits) => drop(worker_waits),
            TurnPlace::Displaced => self.threads.end_displaced(),
            TurnPlace::Worker | TurnPlace::None => {}
        }
    }
}
