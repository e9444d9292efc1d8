use std::{collections::VecDeque, sync::Arc};

use foldhash::HashMap;
use hlorank_graph::{Digest, Segment};
use smallvec::SmallVec;

use super::{BLOCK_NODES, Call, RowKey};
use crate::engine::{
    EngineError,
    block::{BlockRow, ROW_MULTIPLE},
};

/// Rows that are not evaluated yet, of all calls.
#[derive(Default)]
pub(super) struct Waiting {
    /// Who waits for each row; the first has waited longest.
    waiters: HashMap<RowKey, SmallVec<[Waiter; 1]>>,
    /// Rows that no worker has taken yet.
    queues: HashMap<Queue, VecDeque<RowKey>>,
}

/// Rows that may share a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Queue {
    /// Digest of the model.
    pub(super) model: Digest,
    /// Nodes of a row, padding included.
    pub(super) nodes: usize,
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
        self.queues.entry(queue).or_default().push_back(key);
        true
    }

    /// Takes the next rows of a queue that somebody still waits for: a full block, or an even share where that leaves
    /// `workers` something to do. Says whether more are left.
    pub(super) fn take(&mut self, queue: Queue, workers: usize) -> (Vec<(RowKey, Waiter)>, bool) {
        let Some(keys) = self.queues.get_mut(&queue) else { return (Vec::new(), false) };
        let share = keys.len().div_ceil(workers).max(LEAST_NODES / queue.nodes);
        let count = share.next_multiple_of(ROW_MULTIPLE).min(queue.capacity());
        let mut rows = Vec::with_capacity(count);
        while rows.len() < count
            && let Some(key) = keys.pop_front()
        {
            let waiters = self.waiters.get(&key).map_or(&[][..], SmallVec::as_slice);
            match waiters.iter().find(|waiter| waiter.waits()) {
                Some(waiter) => rows.push((key, waiter.clone())),
                None => drop(self.waiters.remove(&key)),
            }
        }
        let more = !keys.is_empty();
        if !more {
            self.queues.remove(&queue);
        }
        (rows, more)
    }

    /// Removes a row that was evaluated, or failed; whoever waited for it is to get the result.
    pub(super) fn finish(&mut self, key: &RowKey) -> impl Iterator<Item = Waiter> + use<> {
        self.waiters.remove(key).unwrap_or_default().into_iter()
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

    pub(super) fn segment(&self) -> &Segment {
        self.call.plan.segment(self.row, &self.call.graph)
    }

    pub(super) fn block_row(&self) -> BlockRow<'_> {
        BlockRow { segment: self.segment(), local: self.call.plan.local(self.row) }
    }
}
