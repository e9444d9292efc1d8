use std::sync::Arc;

use hlorank_graph::SegmentedGraph;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    call::{Call, RowResult, Waiter},
    lookup::{CacheLookup, Part},
    running::{evaluate_next, queue_block},
    waiting::Embeddings,
};
use crate::{
    compute::{Class, WorkerFailed, caller},
    device,
    engine::{EngineError, Terms, backlog::Work, segment::plan::Plan},
    metrics::set,
    model::SegmentModel,
};

/// Every embedding of a call.
pub(crate) struct AllEmbeddings {
    /// `[rows, D]`.
    pub(crate) embeddings: Vec<f32>,
    /// Number of rows that were evaluated for this call.
    pub(crate) evaluated: usize,
}

/// Receives the embeddings of one call.
struct Receiver {
    queue: UnboundedReceiver<RowResult>,
    /// Length of an embedding.
    size: usize,
    work: Work,
    /// Work of the call in nodes.
    nodes: usize,
    /// Rows that the call is missing.
    missing: usize,
}

impl Embeddings {
    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self) {
        self.cache.sample();
        set(&self.waiting_rows, self.waiting().rows() as u64);
    }

    /// Evaluates the missing rows, or waits for other calls that evaluate them, unless the terms do not allow it.
    pub(in crate::engine::segment) async fn complete(
        self: &Arc<Self>,
        model: &Arc<SegmentModel>,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
        looked_up: CacheLookup,
        terms: Terms,
    ) -> Result<AllEmbeddings, EngineError> {
        let CacheLookup {
            mut embeddings,
            parts,
        } = looked_up;
        // Padding included.
        let nodes = parts
            .iter()
            .map(|part| part.rows.len() * part.queue.nodes)
            .sum();
        let work = self
            .backlog
            .add(model.facts().digest, graph.hash, nodes, terms)?;
        // The number of rows that are awaited is bounded below, and so is the length of the channel.
        let (results, queue) = unbounded_channel();
        let call = Arc::new(Call {
            model: Arc::clone(model),
            graph: Arc::clone(graph),
            plan: Arc::clone(plan),
            results,
            caller: caller(),
        });
        let mut receiver = Receiver {
            queue,
            size: model.settings().embedding_size,
            work,
            nodes,
            missing: parts.iter().map(|part| part.rows.len()).sum(),
        };
        let pool = &self.pool;
        // Few configurations of a new graph can miss many rows.
        let class = if nodes > device::INTERACTIVE_NODES {
            Class::Bulk
        } else {
            terms.class
        };
        if class == Class::Interactive {
            pool.note_interactive();
        }
        let mut evaluated = 0;
        let mut awaited = 0;
        for mut part in parts {
            part.queue.class = class;
            // Few enough that calls take turns, enough that every worker has a full block under way and one to take.
            while awaited > 2 * pool.workers() * part.queue.capacity() {
                awaited -= receiver.receive(&mut embeddings).await?;
            }
            awaited += part.rows.len();
            evaluated += self.submit(&call, part);
        }
        // Only waiters keep the sender of the results from here on, so the channel ends if all of
        // them are dropped, and the call fails instead of waiting forever.
        drop(call);
        while awaited > 0 {
            awaited -= receiver.receive(&mut embeddings).await?;
        }
        Ok(AllEmbeddings {
            embeddings,
            evaluated,
        })
    }

    /// Queues the rows of a part, and starts tasks for them, or takes rows at once for a small call. Returns how many of the
    /// rows no other call waits for.
    fn submit(self: &Arc<Self>, call: &Arc<Call>, part: Part) -> usize {
        let Part { queue, rows } = part;
        let mut queued = 0;
        let mut waiting = self.waiting();
        for missing in rows {
            let waiter = Waiter {
                call: Arc::clone(call),
                row: missing.row,
            };
            // It may have been evaluated since it was looked up.
            match self.cache.get(&missing.key) {
                Some(embedding) => waiter.deliver(Ok(embedding)),
                None => queued += usize::from(waiting.add(queue, missing.key, waiter)),
            }
        }
        let pool = &self.pool;
        // Few rows wait while other small calls do, because theirs may fill the block.
        let is_full = queued * queue.nodes >= device::MIN_BLOCK_NODES;
        if let Some(worker) = pool
            .at_once(queue.class)
            .filter(|_| is_full || !pool.has_interactive())
        {
            let has_rows = waiting.add_task(queue);
            drop(waiting);
            if has_rows {
                evaluate_next(self, queue, worker);
            }
        } else {
            let tasks = waiting.start_tasks(queue, pool.workers());
            drop(waiting);
            (0..tasks).for_each(|_| queue_block(self, queue));
        }
        queued
    }
}

impl Receiver {
    /// Receives at least one embedding. Returns how many.
    async fn receive(&mut self, embeddings: &mut [f32]) -> Result<usize, EngineError> {
        const AT_ONCE: usize = 1024;
        let mut results = Vec::new();
        if self.queue.recv_many(&mut results, AT_ONCE).await == 0 {
            return Err(WorkerFailed.into());
        }
        let count = results.len();
        for result in results {
            let (row, embedding) = result?;
            embeddings[row as usize * self.size..][..self.size].copy_from_slice(&embedding);
        }
        // Rows of all sizes count as equally large: an estimate, as is all of the backlog.
        self.work.done(self.nodes * count / self.missing);
        Ok(count)
    }
}
