use std::thread;

use crossbeam_channel::{Receiver, select};

use super::work::Work;

/// The queues from which one worker takes its work: interactive work before bulk work, and the work of each class in the
/// order of submission.
#[derive(Clone)]
pub(super) struct WorkQueue {
    interactive: Receiver<Work>,
    bulk: Receiver<Work>,
    /// Number of interactive pieces taken since the last bulk piece, while bulk work was queued.
    in_a_row: u32,
}

/// One in this many pieces of work is bulk while both classes are queued, so that bulk work always makes progress.
const BULK_SHARE: u32 = 8;

impl WorkQueue {
    pub(super) fn new(interactive: Receiver<Work>, bulk: Receiver<Work>) -> Self {
        Self { interactive, bulk, in_a_row: 0 }
    }

    /// Whether no work waits.
    pub(super) fn is_empty(&self) -> bool {
        self.interactive.is_empty() && self.bulk.is_empty()
    }

    /// Waits for the next work; `None` if the pool has been dropped and no work is left. Before bulk work, the thread
    /// yields if `yields` says so.
    pub(super) fn next(&mut self, yields: impl FnOnce() -> bool) -> Option<Work> {
        if self.in_a_row + 1 < BULK_SHARE
            && let Ok(work) = self.interactive.try_recv()
        {
            self.in_a_row = if self.bulk.is_empty() { 0 } else { self.in_a_row + 1 };
            return Some(work);
        }
        self.in_a_row = 0;
        if yields() {
            thread::yield_now();
        }
        if let Ok(work) = self.bulk.try_recv() {
            return Some(work);
        }
        // If one queue is closed, so is the other, which may still hold work.
        select! {
            recv(self.interactive) -> work => work.or_else(|_| self.bulk.recv()).ok(),
            recv(self.bulk) -> work => work.or_else(|_| self.interactive.recv()).ok(),
        }
    }
}
