use std::{collections::BTreeMap, sync::Arc};

use hlorank_graph::{SegmentedGraph, pace};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    call::{EmbeddingCall, Queue, RowKey, RowResult, Waiter},
    running::{evaluate_next, queue_block},
    waiting::Embeddings,
};
use crate::{
    compute::{Class, WorkerFailed, caller},
    device,
    engine::{EngineError, Terms, backlog::BacklogWork, segment::plan::Plan},
    metrics::{CacheSize, set},
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
    work: BacklogWork,
    /// Work of the call in nodes.
    nodes: usize,
    /// Rows that the call is missing.
    missing: usize,
}

impl Embeddings {
    /// Sets the gauges to the current state.
    pub(crate) fn sample(&self, segments: &CacheSize) {
        self.cache.sample(segments);
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
        if nodes > 0 {
            self.pool.need_worker().await;
        }
        let work = self
            .backlog
            .add(model.facts.digest, graph.hash, nodes, terms)?;
        // The number of rows that are awaited is bounded below, and so is the length of the channel.
        let (results, queue) = unbounded_channel();
        let call = Arc::new(EmbeddingCall {
            model: Arc::clone(model),
            graph: Arc::clone(graph),
            plan: Arc::clone(plan),
            results,
            caller: caller(),
        });
        let mut receiver = Receiver {
            queue,
            size: model.settings.embedding_size,
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
    fn submit(self: &Arc<Self>, call: &Arc<EmbeddingCall>, part: EmbeddingPart) -> usize {
        let EmbeddingPart { queue, rows } = part;
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

/// A row whose embedding is not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MissingRow {
    /// Position in the plan's rows.
    pub(super) row: u32,
    pub(super) key: RowKey,
    /// Position of the row's segment, as in [`Row`](hlorank_graph::Row).
    pub(super) segment: usize,
}

/// Missing rows by the queue of their padded size, the smallest first.
type RowsBySize = BTreeMap<Queue, Vec<MissingRow>>;

/// Rows that a call queues at a time: at most a full block.
#[derive(Debug, PartialEq, Eq)]
struct EmbeddingPart {
    pub(super) queue: Queue,
    /// Sorted by segment.
    pub(super) rows: Vec<MissingRow>,
}

/// What the cache had of a call's rows.
pub(crate) struct CacheLookup {
    /// `[rows, D]` of the rows that were looked up; 0 for those that are missing.
    pub(super) embeddings: Vec<f32>,
    /// The missing rows, in the order in which they are to be evaluated.
    parts: Vec<EmbeddingPart>,
}

/// Number of rows that are looked up between two pauses.
const LOOK_UP_ROWS: usize = 256;

impl Embeddings {
    /// Looks up the rows of a plan in the cache.
    pub(in crate::engine::segment) fn look_up(
        &self,
        model: &SegmentModel,
        graph: &SegmentedGraph,
        plan: &Plan,
    ) -> CacheLookup {
        let size = model.settings.embedding_size;
        let mut embeddings = Vec::with_capacity(plan.rows.len() * size);
        let mut missing = RowsBySize::new();
        for row in pace::in_steps(LOOK_UP_ROWS, (0..).take(plan.rows.len())) {
            let planned = plan.row(row, graph);
            let key = RowKey::new(model.facts.digest, planned);
            if let Some(embedding) = self.cache.get(&key) {
                embeddings.extend_from_slice(&embedding);
                continue;
            }
            // Zeros keep the place of the embedding until it is evaluated.
            embeddings.resize(embeddings.len() + size, 0.0);
            let nodes = model.settings.bucket(planned.facts().nodes);
            let queue = Queue::new(model, nodes);
            let segment = planned.row.segment;
            missing
                .entry(queue)
                .or_default()
                .push(MissingRow { row, key, segment });
        }
        let misses = missing.values().map(Vec::len).sum();
        self.cache.looked_up(plan.rows.len(), misses);
        CacheLookup {
            embeddings,
            parts: parts(missing),
        }
    }
}

/// Cuts missing rows into parts by padded size. Few rows of a size are padded to the next size in use, which saves a run of
/// the encoder.
fn parts(mut by_size: RowsBySize) -> Vec<EmbeddingPart> {
    let mut parts = Vec::new();
    while let Some((queue, mut rows)) = by_size.pop_first() {
        // The additional padding costs less than a run of its own. Merged rows can be merged again
        // with the size after that.
        if let Some(mut larger) = by_size.first_entry()
            && rows.len() * (larger.key().nodes - queue.nodes) <= device::RUN_NODES
        {
            larger.get_mut().append(&mut rows);
            continue;
        }
        // Rows of one segment share what a block computes of it, so they belong into one part.
        rows.sort_by_key(|missing| missing.segment);
        parts.extend(rows.chunks(queue.capacity()).map(|rows| EmbeddingPart {
            queue,
            rows: rows.to_vec(),
        }));
    }
    parts
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;

    use super::*;
    use crate::compute::Class;

    const MODEL: Digest = Digest([0; 32]);

    fn queue(nodes: usize) -> Queue {
        Queue {
            model: MODEL,
            nodes,
            class: Class::Bulk,
            multiple: 4,
        }
    }

    fn missing(rows: std::ops::Range<u32>) -> Vec<MissingRow> {
        let key = RowKey {
            model: MODEL,
            row: MODEL,
        };
        rows.map(|row| MissingRow {
            row,
            key,
            segment: 1000 - row as usize,
        })
        .collect()
    }

    fn sizes(by_size: &[(usize, std::ops::Range<u32>)]) -> Vec<(usize, usize)> {
        let by_size = by_size.iter().cloned();
        let by_size = by_size.map(|(nodes, rows)| (queue(nodes), missing(rows)));
        parts(by_size.collect())
            .iter()
            .map(|part| (part.queue.nodes, part.rows.len()))
            .collect()
    }

    #[test]
    fn few_rows_ride_with_the_next_size() {
        assert_eq!(
            sizes(&[(4, 0..10), (8, 10..15), (16, 15..30)]),
            [(8, 15), (16, 15)]
        );
        assert_eq!(sizes(&[(4, 0..2), (8, 2..5), (16, 5..30)]), [(16, 30)]);
    }

    #[test]
    fn many_rows_are_cut_into_full_blocks() {
        assert_eq!(sizes(&[(128, 0..17)]), [(128, 8), (128, 8), (128, 1)]);
        assert_eq!(sizes(&[(4096, 0..5)]), [(4096, 4), (4096, 1)]);
    }

    #[test]
    fn rows_of_a_segment_are_neighbours() {
        let by_size = BTreeMap::from([(queue(8), missing(0..5))]);
        let parts = parts(by_size);
        assert!(parts[0].rows.is_sorted_by_key(|missing| missing.segment));
        assert_eq!(parts[0].rows.len(), 5);
    }
}
