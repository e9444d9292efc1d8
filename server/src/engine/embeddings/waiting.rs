use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;
use hlorank_graph::Digest;
use smallvec::SmallVec;

use super::{BLOCK_NODES, Call, RowKey};
use crate::{
    compute::Class,
    engine::{EngineError, block::ROW_MULTIPLE, plan::PlannedRow},
};

/// Rows that are not evaluated yet, of all calls.
#[derive(Default)]
pub(super) struct Waiting {
    /// Who waits for each row; the first has waited longest.
    waiters: HashMap<RowKey, Waiters>,
    queues: HashMap<Queue, Queued>,
}

/// Those who wait for one row.
pub(super) type Waiters = SmallVec<[Waiter; 1]>;

/// What a task does next.
#[derive(Default)]
pub(super) struct Taken {
    /// Rows, each with one of those who wait for it.
    pub(super) rows: Vec<(RowKey, Waiter)>,
    /// Those who wait no more. They are dropped by the caller, since that may free much and others wait for the lock.
    pub(super) gone: Vec<Waiters>,
    /// Whether rows are left, so that the task goes on.
    pub(super) more: bool,
}

/// What is in a queue.
#[derive(Default)]
struct Queued {
    /// Rows that no worker has taken yet.
    rows: VecDeque<RowKey>,
    /// Tasks of the compute pool that will take rows; at least one as long as there are any.
    tasks: usize,
}

/// Rows that may share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Queue {
    /// Digest of the model.
    pub(super) model: Digest,
    /// Nodes of a row, padding included.
    pub(super) nodes: usize,
    /// Rows of small calls do not wait for those of others.
    pub(super) class: Class,
}

/// A call, and which of its rows it waits for.
#[derive(Clone)]
pub(super) struct Waiter {
    pub(super) call: Arc<Call>,
    pub(super) row: u32,
}

/// Nodes below which a block is not split among workers: what a run costs whatever its size outweighs the gain.
const LEAST_NODES: usize = 256;

impl Queue {
    /// Rows of a full block.
    pub(super) fn capacity(self) -> usize {
        (BLOCK_NODES / self.nodes / ROW_MULTIPLE).max(1) * ROW_MULTIPLE
    }
}

impl Waiting {
    /// Adds a waiter; returns whether the row is new, and so was queued.
    pub(super) fn add(&mut self, queue: Queue, key: RowKey, waiter: Waiter) -> bool {
        let waiters = self.waiters.entry(key).or_default();
        waiters.push(waiter);
        if waiters.len() > 1 {
            return false;
        }
        self.queues.entry(queue).or_default().rows.push_back(key);
        true
    }

    /// How many tasks to start, so that a queue has as many as there are workers. More would stand before other calls
    /// in the compute pool.
    pub(super) fn start_tasks(&mut self, queue: Queue, workers: usize) -> usize {
        let Some(queued) = self.queues.get_mut(&queue) else { return 0 };
        workers.saturating_sub(std::mem::replace(&mut queued.tasks, workers))
    }

    /// Takes the next rows of a queue that somebody still waits for: a full block, or an even share where that leaves
    /// `workers` something to do; a small block where others shall not wait long.
    pub(super) fn take(&mut self, queue: Queue, workers: usize, is_small: bool) -> Taken {
        let mut taken = Taken::default();
        let Some(queued) = self.queues.get_mut(&queue) else { return taken };
        let least = LEAST_NODES / queue.nodes;
        let share = if is_small { least } else { queued.rows.len().div_ceil(workers).max(least) };
        let count = share.max(1).next_multiple_of(ROW_MULTIPLE).min(queue.capacity());
        while taken.rows.len() < count
            && let Some(key) = queued.rows.pop_front()
        {
            let waiting = self.waiters.get(&key).and_then(|all| all.iter().find(|waiter| waiter.waits()));
            match waiting {
                Some(waiter) => taken.rows.push((key, waiter.clone())),
                None => taken.gone.extend(self.waiters.remove(&key)),
            }
        }
        taken.more = !queued.rows.is_empty();
        queued.tasks -= usize::from(!taken.more);
        if queued.tasks == 0 {
            self.queues.remove(&queue);
        }
        taken
    }

    /// Rows that somebody waits for, or did.
    pub(super) fn rows(&self) -> usize {
        self.waiters.len()
    }

    /// Whether a single call waits for these rows, or none.
    pub(super) fn are_of_one_call(&self, rows: &[(RowKey, Waiter)]) -> bool {
        let waiters = rows.iter().filter_map(|(key, _)| self.waiters.get(key)).flatten();
        let mut calls = waiters.filter(|waiter| waiter.waits()).map(|waiter| Arc::as_ptr(&waiter.call));
        let first = calls.next();
        calls.all(|call| Some(call) == first)
    }

    /// Removes rows that were evaluated, or failed; whoever waited for each of them is to get the result.
    pub(super) fn finish(&mut self, rows: impl Iterator<Item = (RowKey, Waiter)>) -> Vec<Waiters> {
        rows.map(|(key, _)| self.waiters.remove(&key).unwrap_or_default()).collect()
    }
}

impl Waiter {
    /// Whether the call was neither cancelled nor failed.
    fn waits(&self) -> bool {
        !self.call.results.is_closed()
    }

    pub(super) fn deliver(&self, embedding: Result<Arc<[f32]>, EngineError>) {
        // An error means that the call waits no more.
        let _ = self.call.results.send(embedding.map(|embedding| (self.row, embedding)));
    }

    pub(super) fn planned_row(&self) -> PlannedRow<'_> {
        self.call.plan.row(self.row, &self.call.graph)
    }
}
