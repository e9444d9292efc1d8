use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, select};
use parking_lot::Mutex;

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
    /// Since when a worker has done bulk work that may be long, beside small calls.
    long_since: Arc<Mutex<Option<Instant>>>,
    /// Whether this worker does.
    is_long: bool,
}

/// One in this many pieces of work is bulk while both classes are queued, and takes this share of the time, so that bulk work
/// always makes progress, and a run of some hundred milliseconds is not followed by another while small calls wait.
const BULK_SHARE: u32 = 8;

/// Duration from which on the time of a bulk piece counts, beside the number of pieces.
const LONG: Duration = Duration::from_millis(5);

/// Duration of a bulk piece after which the next may be as long: beside small calls, only one worker at a time takes such
/// pieces, so that another is there for the small calls.
const VERY_LONG: Duration = Duration::from_millis(30);

/// Time after which a worker no longer keeps others from long pieces, because it may never end.
const MAX_LONG: Duration = Duration::from_secs(1);

/// Interval in which a worker that leaves bulk work to another looks whether it may take some.
const LOOK: Duration = Duration::from_millis(1);

impl WorkQueue {
    pub(super) fn new(interactive: Receiver<Work>, bulk: Receiver<Work>) -> Self {
        Self {
            interactive,
            bulk,
            last: None,
            in_a_row: 0,
            interactive_time: Duration::ZERO,
            bulk_time: Duration::ZERO,
            long_since: Arc::default(),
            is_long: false,
        }
    }

    /// Whether no work waits.
    pub(super) fn is_empty(&self) -> bool {
        self.interactive.is_empty() && self.bulk.is_empty()
    }

    /// Waits for the next work; `None` if the pool has been dropped and no work is left. `is_interactive` says whether there
    /// were small calls recently. The thread then yields before bulk work, and leaves long work to another worker.
    pub(super) fn next(&mut self, is_interactive: impl Fn() -> bool) -> Option<Work> {
        self.note_time();
        if !self.is_turn_of_bulk()
            && let Ok(work) = self.interactive.try_recv()
        {
            // Only pieces that bulk work has to wait for count.
            self.in_a_row = if self.bulk.is_empty() {
                0
            } else {
                self.in_a_row + 1
            };
            return self.taken(Class::Interactive, Some(work));
        }
        self.in_a_row = 0;
        self.interactive_time = Duration::ZERO;
        if !self.bulk.is_empty() && is_interactive() {
            thread::yield_now();
        }
        // While another worker does long work beside small calls, this one leaves such work to it. The duration of the next
        // piece is not known; that of the last one is its estimate.
        while self.bulk_time >= VERY_LONG && is_interactive() && !self.begin_long() {
            if let Ok(work) = self.interactive.recv_timeout(LOOK) {
                return self.taken(Class::Interactive, Some(work));
            }
        }
        if let Ok(work) = self.bulk.try_recv() {
            return self.taken(Class::Bulk, Some(work));
        }
        // A worker that sleeps does no long work.
        self.end_long();
        // If one queue is closed, so is the other, which may still hold work.
        let (class, work) = select! {
            recv(self.interactive) -> work => (Class::Interactive, work.or_else(|_| self.bulk.recv()).ok()),
            recv(self.bulk) -> work => (Class::Bulk, work.or_else(|_| self.interactive.recv()).ok()),
        };
        self.taken(class, work)
    }

    /// Takes the right to do long work beside small calls; returns whether no other worker has it.
    fn begin_long(&mut self) -> bool {
        let mut since = self.long_since.lock();
        let is_free = since.is_none_or(|since| since.elapsed() > MAX_LONG);
        if is_free {
            *since = Some(Instant::now());
            self.is_long = true;
        }
        is_free
    }

    fn end_long(&mut self) {
        if std::mem::take(&mut self.is_long) {
            *self.long_since.lock() = None;
        }
    }

    fn is_turn_of_bulk(&self) -> bool {
        // After a long bulk piece, interactive work first gets seven times the time of that piece,
        // however many pieces that takes.
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
        self.end_long();
        match self.last.take() {
            Some((Class::Interactive, taken)) => self.interactive_time += taken.elapsed(),
            Some((Class::Bulk, taken)) => self.bulk_time = taken.elapsed(),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::unbounded;

    use super::*;

    #[test]
    fn beside_small_calls_one_worker_at_a_time_takes_long_work() {
        let ((small, interactive), (large, bulk)) = (unbounded(), unbounded());
        let queue = WorkQueue::new(interactive, bulk);
        // It is the turn of bulk work, and the last piece was long.
        let worker = || WorkQueue {
            bulk_time: VERY_LONG,
            in_a_row: BULK_SHARE,
            interactive_time: BULK_SHARE * VERY_LONG,
            ..queue.clone()
        };
        let [mut first, mut second] = [worker(), worker()];
        let send = |sender: &crossbeam_channel::Sender<Work>| {
            sender.send(Box::new(|_| ())).unwrap();
        };
        send(&large);
        send(&large);
        send(&small);
        let class = |queue: &WorkQueue| queue.last.map(|(class, _)| class);
        assert!(first.next(|| true).is_some());
        assert_eq!(class(&first), Some(Class::Bulk));
        assert!(second.next(|| true).is_some());
        assert_eq!(class(&second), Some(Class::Interactive));
        // The long piece has ended.
        first.note_time();
        second.in_a_row = BULK_SHARE;
        second.interactive_time = BULK_SHARE * VERY_LONG;
        assert!(second.next(|| true).is_some());
        assert_eq!(class(&second), Some(Class::Bulk));
    }
}
