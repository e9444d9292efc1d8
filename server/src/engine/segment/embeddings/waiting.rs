use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;
use metrics::Gauge;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::{
    cache::EmbeddingCache,
    call::{Queue, RowKey, Waiter},
};
use crate::{
    compute::{Class, ComputePool},
    engine::backlog::Backlog,
};

/// Embeddings that were evaluated, and rows that wait for their evaluation: what calls and workers share.
pub(crate) struct Embeddings {
    pub(super) pool: Arc<ComputePool>,
    pub(crate) cache: EmbeddingCache,
    pub(super) backlog: Arc<Backlog>,
    pub(super) waiting_rows: Gauge,
    waiting: Mutex<WaitingRows>,
}

/// The rows of all calls that are not evaluated yet.
#[derive(Default)]
pub(super) struct WaitingRows {
    /// The calls that wait for each row; the first has waited longest.
    waiters: HashMap<RowKey, Waiters>,
    queues: HashMap<Queue, QueuedRows>,
}

/// The calls that wait for one row.
pub(super) type Waiters = SmallVec<[Waiter; 1]>;

/// What a task of the compute pool takes from a queue.
#[derive(Default)]
pub(super) struct NextRows {
    /// Rows, each with one of the calls that wait for it.
    pub(super) rows: Vec<(RowKey, Waiter)>,
    /// Calls that no longer wait. The caller drops them after it has released the lock, since that may free much memory.
    pub(super) cancelled: Vec<Waiters>,
    /// Whether rows are left for another task.
    pub(super) more: bool,
}

/// The content of a queue.
#[derive(Default)]
struct QueuedRows {
    /// Rows that no worker has taken yet.
    rows: VecDeque<RowKey>,
    /// Number of tasks of the compute pool that will take rows; at least one while there are rows.
    tasks: usize,
}

impl Embeddings {
    /// Evaluates on a pool the rows that a cache lacks, and counts that work in a backlog. `waiting_rows` shows the number
    /// of rows that wait.
    pub(crate) fn new(
        pool: Arc<ComputePool>,
        cache: EmbeddingCache,
        backlog: Arc<Backlog>,
        waiting_rows: Gauge,
    ) -> Self {
        Self {
            waiting: Mutex::default(),
            pool,
            cache,
            backlog,
            waiting_rows,
        }
    }

    /// Number of workers among which waiting rows are divided. Those of small calls are not divided if every worker has
    /// other work to take.
    pub(super) fn takers(&self, class: Class) -> usize {
        let workers = self.pool.workers();
        // Blocks that nobody is free to take gain nothing, and each costs another run.
        if class == Class::Interactive && self.pool.queued() >= workers {
            1
        } else {
            workers
        }
    }

    /// The rows that wait. The state is consistent between any two of its operations, so a panic elsewhere does not
    /// spoil it.
    pub(super) fn waiting(&self) -> MutexGuard<'_, WaitingRows> {
        self.waiting.lock()
    }
}

impl WaitingRows {
    /// Adds a waiter; returns whether the row is new, and so was queued.
    pub(super) fn add(&mut self, queue: Queue, key: RowKey, waiter: Waiter) -> bool {
        let waiters = self.waiters.entry(key).or_default();
        waiters.push(waiter);
        // A row that a call waits for already is queued or being evaluated.
        if waiters.len() > 1 {
            return false;
        }
        self.queues.entry(queue).or_default().rows.push_back(key);
        true
    }

    /// Returns how many tasks to start, so that a queue has as many as there are workers. More of them would delay other
    /// calls in the compute pool.
    pub(super) fn start_tasks(&mut self, queue: Queue, workers: usize) -> usize {
        let Some(queued) = self.queues.get_mut(&queue) else {
            return 0;
        };
        let tasks = workers.saturating_sub(queued.tasks);
        queued.tasks += tasks;
        tasks
    }

    /// Adds one task if there are rows for it.
    pub(super) fn add_task(&mut self, queue: Queue) -> bool {
        let queued = self
            .queues
            .get_mut(&queue)
            .filter(|queued| !queued.rows.is_empty());
        queued.map(|queued| queued.tasks += 1).is_some()
    }

    /// Takes the next rows of a queue that a call still waits for: a full block, or an even share if that keeps `workers`
    /// busy, or a small block if interactive calls come.
    pub(super) fn take(&mut self, queue: Queue, workers: usize, is_small: bool) -> NextRows {
        let mut taken = NextRows::default();
        let Some(queued) = self.queues.get_mut(&queue) else {
            return taken;
        };
        // The least share makes the smallest block that is worth a run.
        let share = if is_small {
            0
        } else {
            queued.rows.len().div_ceil(workers)
        };
        let count = queue.block_rows(share);
        while taken.rows.len() < count
            && let Some(key) = queued.rows.pop_front()
        {
            // A row that only cancelled calls wait for is dropped here, because they cannot find it in the queue.
            match first_waiting(&self.waiters, &key) {
                Some(waiter) => taken.rows.push((key, waiter.clone())),
                None => taken.cancelled.extend(self.waiters.remove(&key)),
            }
        }
        // While rows are left, the task stays one of the queue's, and the caller queues it again.
        taken.more = !queued.rows.is_empty();
        queued.tasks -= usize::from(!taken.more);
        if queued.tasks == 0 {
            self.queues.remove(&queue);
        }
        taken
    }

    /// Number of rows that calls wait for or waited for.
    pub(super) fn rows(&self) -> usize {
        self.waiters.len()
    }

    /// Whether at most one call waits for these rows.
    pub(super) fn are_of_one_call(&self, rows: &[(RowKey, Waiter)]) -> bool {
        let waiters = rows
            .iter()
            .filter_map(|(key, _)| self.waiters.get(key))
            .flatten();
        let mut calls = waiters
            .filter(|waiter| waiter.is_waiting())
            .map(|waiter| Arc::as_ptr(&waiter.call));
        let first = calls.next();
        calls.all(|call| Some(call) == first)
    }

    /// Whether a call waits for a row.
    pub(super) fn is_awaited(&self, key: &RowKey) -> bool {
        first_waiting(&self.waiters, key).is_some()
    }

    /// Removes rows that were evaluated or failed. Returns the calls that wait for each of them.
    pub(super) fn finish(&mut self, rows: impl Iterator<Item = RowKey>) -> Vec<Waiters> {
        rows.map(|key| self.waiters.remove(&key).unwrap_or_default())
            .collect()
    }
}

/// Returns the call that has waited longest for a row, of those that still wait.
fn first_waiting<'a>(waiters: &'a HashMap<RowKey, Waiters>, key: &RowKey) -> Option<&'a Waiter> {
    waiters.get(key)?.iter().find(|waiter| waiter.is_waiting())
}
