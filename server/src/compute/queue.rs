use std::{
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, select};

use super::work::{Class, Work};

/// The queues from which one worker takes its work: interactive work before bulk work, and the work of each class in the
/// order of submission.
#[derive(Clone)]
pub(super) struct WorkQueue {
    interactive: Receiver<Work>,
    bulk: Receiver<Work>,
    /// The class of the last piece, and when it was taken.
    last: Option<(Class, Instant)>,
    /// Number of interactive pieces taken since the last bulk piece, while bulk work was queued.
    in_a_row: u32,
    /// Time that those took.
    interactive_time: Duration,
    /// Time that the last bulk piece took.
    bulk_time: Duration,
}

/// One in this many pieces of work is bulk while both classes are queued, and takes this share of the time, so that bulk work
/// always makes progress, and a run of some hundred milliseconds is not followed by another while small calls wait.
const BULK_SHARE: u32 = 8;

/// Duration from which on the time of a bulk piece counts, beside the number of pieces.
const LONG: Duration = Duration::from_millis(5);

impl WorkQueue {
    pub(super) fn new(interactive: Receiver<Work>, bulk: Receiver<Work>) -> Self {
        let (interactive_time, bulk_time) = (Duration::ZERO, Duration::ZERO);
        Self {
            interactive,
            bulk,
            last: None,
            in_a_row: 0,
            interactive_time,
            bulk_time,
        }
    }

    /// Whether no work waits.
    pub(super) fn is_empty(&self) -> bool {
        self.interactive.is_empty() && self.bulk.is_empty()
    }

    /// Waits for the next work; `None` if the pool has been dropped and no work is left. Before bulk work, the thread
    /// yields if `yields` says so.
    pub(super) fn next(&mut self, yields: impl FnOnce() -> bool) -> Option<Work> {
        self.note_time();
        if !self.is_turn_of_bulk()
            && let Ok(work) = self.interactive.try_recv()
        {
            self.in_a_row = if self.bulk.is_empty() {
                0
            } else {
                self.in_a_row + 1
            };
            return self.taken(Class::Interactive, Some(work));
        }
        self.in_a_row = 0;
        self.interactive_time = Duration::ZERO;
        if yields() {
            thread::yield_now();
        }
        if let Ok(work) = self.bulk.try_recv() {
            return self.taken(Class::Bulk, Some(work));
        }
        // If one queue is closed, so is the other, which may still hold work.
        let (class, work) = select! {
            recv(self.interactive) -> work => (Class::Interactive, work.or_else(|_| self.bulk.recv()).ok()),
            recv(self.bulk) -> work => (Class::Bulk, work.or_else(|_| self.interactive.recv()).ok()),
        };
        self.taken(class, work)
    }

    fn is_turn_of_bulk(&self) -> bool {
        let share = BULK_SHARE - 1;
        let is_fair = self.bulk_time < LONG || self.interactive_time >= share * self.bulk_time;
        self.in_a_row >= share && is_fair
    }

    fn taken(&mut self, class: Class, work: Option<Work>) -> Option<Work> {
        self.last = Some((class, Instant::now()));
        work
    }

    /// Adds the time since the last piece was taken.
    fn note_time(&mut self) {
        match self.last.take() {
            Some((Class::Interactive, taken)) => self.interactive_time += taken.elapsed(),
            Some((Class::Bulk, taken)) => self.bulk_time = taken.elapsed(),
            None => {}
        }
    }
}
