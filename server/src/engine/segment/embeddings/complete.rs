use std::{sync::Arc, time::Instant};

use hlorank_graph::SegmentedGraph;
use metrics::Gauge;
use parking_lot::MutexGuard;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{
    cache::EmbeddingCache,
    call::{Call, Queue, RowKey, RowResult, Waiter},
    parts::{CacheLookup, MissingRow, Part, RowsBySize, parts},
    running::{evaluate_next, queue_block},
    shared::EmbeddingState,
    waiting::Waiting,
};
use crate::{
    compute::{Class, ComputePool, WorkerFailed, caller},
    engine::{
        EngineError, Terms,
        backlog::{Backlog, Work},
        segment::plan::{Plan, PlannedRow},
    },
    metrics::set,
    model::SegmentModel,
};

/// Embeddings that were evaluated, and rows that wait for their evaluation.
pub(in crate::engine::segment) struct Embeddings(Arc<EmbeddingState>);

/// Every embedding of a call.
pub(in crate::engine::segment) struct AllEmbeddings {
    /// `[rows, D]`.
    pub(in crate::engine::segment) embeddings: Vec<f32>,
    /// Number of rows that were evaluated for this call.
    pub(in crate::engine::segment) evaluated: usize,
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

/// The rows that one turn of a lookup has not found in the cache.
struct Lookup<'a> {
    state: &'a EmbeddingState,
    model: &'a SegmentModel,
    missing: RowsBySize,
}

/// Number of rows that are looked up between two looks at the clock.
const LOOK_UP_ROWS: usize = 256;

impl Embeddings {
    /// Evaluates on a pool the rows that a cache lacks, and counts that work in a backlog. `waiting_rows` shows the number
    /// of rows that wait.
    pub(in crate::engine::segment) fn new(
        pool: Arc<ComputePool>,
        cache: Arc<EmbeddingCache>,
        backlog: Arc<Backlog>,
        waiting_rows: Gauge,
    ) -> Self {
        Self(Arc::new(EmbeddingState::new(
            pool,
            cache,
            backlog,
            waiting_rows,
        )))
    }

    /// The embeddings that were evaluated.
    pub(in crate::engine::segment) fn cache(&self) -> &Arc<EmbeddingCache> {
        &self.0.cache
    }

    /// Sets the gauges to the current state.
    pub(in crate::engine::segment) fn sample(&self) {
        self.0.cache.sample();
        set(&self.0.waiting_rows, self.0.waiting().rows() as u64);
    }

    /// Looks up the next rows of a plan in the cache, until `until` or a little longer. Returns whether every row was
    /// looked up.
    pub(in crate::engine::segment) fn look_up(
        &self,
        model: &SegmentModel,
        graph: &SegmentedGraph,
        plan: &Plan,
        looked_up: &mut CacheLookup,
        until: Instant,
    ) -> bool {
        let size = model.settings().embedding_size;
        let embeddings = &mut looked_up.embeddings;
        if embeddings.is_empty() {
            embeddings.reserve_exact(plan.rows.len() * size);
        }
        let mut lookup = Lookup {
            state: &self.0,
            model,
            missing: RowsBySize::new(),
        };
        // Found or not, a row takes its place in the embeddings, so their number is that of the
        // rows that earlier turns looked up.
        let first = embeddings.len() / size;
        for (done, row) in (0..).take(plan.rows.len()).skip(first).enumerate() {
            if done > 0 && done.is_multiple_of(LOOK_UP_ROWS) && Instant::now() >= until {
                break;
            }
            lookup.look_up(row, plan.row(row, graph), embeddings);
        }
        let end = embeddings.len() / size;
        let misses = lookup.missing.values().map(Vec::len).sum();
        self.0.cache.looked_up(end - first, misses);
        let parts = parts(lookup.missing, self.0.device());
        looked_up.parts.extend(parts);
        end == plan.rows.len()
    }

    /// Evaluates the missing rows, or waits for other calls that evaluate them, unless the terms do not allow it.
    pub(in crate::engine::segment) async fn complete(
        &self,
        model: &Arc<SegmentModel>,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
        looked_up: CacheLookup,
        terms: Terms,
    ) -> Result<AllEmbeddings, EngineError> {
        let nodes = looked_up.missing_nodes();
        let work = self
            .0
            .backlog
            .add(model.facts().digest, graph.hash, nodes, terms)?;
        // `evaluate` bounds the number of rows that are awaited, and so the length of the channel.
        let (results, queue) = unbounded_channel();
        let call = Call {
            model: Arc::clone(model),
            graph: Arc::clone(graph),
            plan: Arc::clone(plan),
            results,
            caller: caller(),
        };
        let receiver = Receiver {
            queue,
            size: model.settings().embedding_size,
            work,
            nodes,
            missing: looked_up.missing_rows(),
        };
        self.evaluate(Arc::new(call), looked_up, receiver, terms.class)
            .await
    }

    async fn evaluate(
        &self,
        call: Arc<Call>,
        looked_up: CacheLookup,
        mut receiver: Receiver,
        class: Class,
    ) -> Result<AllEmbeddings, EngineError> {
        let CacheLookup {
            mut embeddings,
            parts,
        } = looked_up;
        let pool = &self.0.pool;
        let device = self.0.device();
        // Few configurations of a new graph can miss many rows.
        let class = if receiver.nodes > device.interactive_nodes {
            Class::Bulk
        } else {
            class
        };
        if class == Class::Interactive {
            pool.note_interactive();
        }
        let mut evaluated = 0;
        let mut awaited = 0;
        for mut part in parts {
            part.queue.class = class;
            // Few enough that calls take turns, enough that every worker has a full block under way and one to take.
            while awaited > 2 * pool.workers() * part.queue.capacity(device) {
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

    /// Queues the rows of a part. Returns how many of them no other call waits for.
    fn submit(&self, call: &Arc<Call>, part: Part) -> usize {
        let Part { queue, rows } = part;
        let mut queued = 0;
        let mut waiting = self.0.waiting();
        for missing in rows {
            let waiter = Waiter {
                call: Arc::clone(call),
                row: missing.row,
            };
            // It may have been evaluated since it was looked up.
            match self.0.cache.get(&missing.key) {
                Some(embedding) => waiter.deliver(Ok(embedding)),
                None => queued += usize::from(waiting.add(queue, missing.key, waiter)),
            }
        }
        self.start(queue, queued, waiting);
        queued
    }

    /// Starts tasks for a queue to which `queued` rows were added, or takes rows at once for a
    /// small call.
    fn start(&self, queue: Queue, queued: usize, mut waiting: MutexGuard<'_, Waiting>) {
        let pool = &self.0.pool;
        // Few rows wait while other small calls do, because theirs may fill the block.
        let is_full = queued * queue.nodes >= self.0.device().min_block_nodes;
        if let Some(worker) = pool
            .at_once(queue.class)
            .filter(|_| is_full || !pool.has_interactive())
        {
            let has_rows = waiting.add_task(queue);
            drop(waiting);
            if has_rows {
                evaluate_next(&self.0, queue, worker);
            }
        } else {
            let tasks = waiting.start_tasks(queue, pool.workers());
            drop(waiting);
            (0..tasks).for_each(|_| queue_block(&self.0, queue));
        }
    }
}

impl Lookup<'_> {
    /// Appends the embedding of a row. If it is missing, zeros keep its place until it is
    /// evaluated.
    fn look_up(&mut self, row: u32, planned: PlannedRow<'_>, embeddings: &mut Vec<f32>) {
        let key = RowKey::new(self.model.facts().digest, planned);
        if let Some(embedding) = self.state.cache.get(&key) {
            embeddings.extend_from_slice(&embedding);
            return;
        }
        let size = self.model.settings().embedding_size;
        embeddings.resize(embeddings.len() + size, 0.0);
        self.add_missing(row, key, planned);
    }

    fn add_missing(&mut self, row: u32, key: RowKey, planned: PlannedRow<'_>) {
        let nodes = self.model.settings().bucket(planned.facts().nodes);
        let queue = Queue::new(self.model, nodes, self.state.device());
        let segment = planned.row.segment;
        self.missing
            .entry(queue)
            .or_default()
            .push(MissingRow { row, key, segment });
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
