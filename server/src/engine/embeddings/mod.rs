//! The embedding of every row, each evaluated once across calls.
//!
//! A row is looked up in a cache; what is missing waits in a queue of its padded size, where rows of all calls meet
//! and workers take them in blocks. A call that needs a row which another call waits for waits with it.

mod cache;
mod parts;
mod running;
mod waiting;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use hlorank_graph::{Digest, Row, SegmentedGraph};
use metrics::Gauge;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

pub(super) use self::cache::EmbeddingCache;
use self::{
    parts::{Missing, Part, parts},
    running::RunningBlock,
    waiting::{Queue, Taken, Waiter, Waiting},
};
use super::{EngineError, Terms, backlog::Backlog, plan::Plan};
use crate::{
    compute::{Class, ComputePool, Worker, WorkerFailed},
    metrics::set,
    model::Model,
};

/// Embeddings that were evaluated, and rows that wait for it.
pub(super) struct Embeddings {
    pool: Arc<ComputePool>,
    cache: Arc<EmbeddingCache>,
    backlog: Arc<Backlog>,
    waiting: Mutex<Waiting>,
    waiting_rows: Gauge,
}

/// What an embedding depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RowKey {
    model: Digest,
    /// BLAKE3 of the segment's digest and the local configuration.
    row: Digest,
}

/// One call that needs embeddings.
struct Call {
    model: Arc<Model>,
    graph: Arc<SegmentedGraph>,
    plan: Arc<Plan>,
    results: UnboundedSender<Evaluated>,
}

/// A row of a call's plan, and its embedding.
type Evaluated = Result<(u32, Arc<[f32]>), EngineError>;

/// What the cache had of a call's rows.
#[derive(Default)]
pub(super) struct LookedUp {
    /// `[rows, D]` of the rows that were looked up; 0 where it is missing.
    embeddings: Vec<f32>,
    /// What is missing, in the order in which it is to be evaluated.
    parts: Vec<Part>,
}

/// Every embedding of a call.
pub(super) struct Completed {
    /// `[rows, D]`.
    pub(super) embeddings: Vec<f32>,
    /// Rows that were evaluated for this call.
    pub(super) evaluated: usize,
}

/// Nodes of a block, padding included: what a node takes in the encoder, a few hundred bytes an operator, then stays in
/// a core's cache. Chosen by `cargo bench --bench encoder`.
const BLOCK_NODES: usize = 1024;

/// Nodes of the rows of an interactive call: more of them, say of a new graph, are bulk work however few its
/// configurations are.
const INTERACTIVE_NODES: usize = 8 * BLOCK_NODES;

/// Rows that are looked up between two looks at the clock.
const LOOK_UP_ROWS: usize = 256;

impl Embeddings {
    /// Evaluates on a pool what a cache has not, which it adds to a backlog; `waiting_rows` is what shows the rows that
    /// wait.
    pub(super) fn new(
        pool: Arc<ComputePool>,
        cache: Arc<EmbeddingCache>,
        backlog: Arc<Backlog>,
        waiting_rows: Gauge,
    ) -> Self {
        Self { pool, cache, backlog, waiting: Mutex::default(), waiting_rows }
    }

    /// What has been evaluated.
    pub(super) fn cache(&self) -> &Arc<EmbeddingCache> {
        &self.cache
    }

    /// Sets the gauges of what there is now.
    pub(super) fn sample(&self) {
        self.cache.sample();
        set(&self.waiting_rows, self.waiting().rows() as u64);
    }

    /// What the cache has of the next of a plan's rows, until then or a little longer; returns whether all were looked
    /// up.
    pub(super) fn look_up(
        &self,
        model: &Model,
        graph: &SegmentedGraph,
        plan: &Plan,
        looked_up: &mut LookedUp,
        until: Instant,
    ) -> bool {
        let size = model.manifest().embedding_size;
        let embeddings = &mut looked_up.embeddings;
        if embeddings.is_empty() {
            embeddings.reserve_exact(plan.rows.len() * size);
        }
        let first = embeddings.len() / size;
        let mut missing: BTreeMap<Queue, Vec<Missing>> = BTreeMap::new();
        let mut misses = 0;
        for (row, &Row { segment, .. }) in (0..).zip(&plan.rows).skip(first) {
            let found = embeddings.len() / size - first;
            if found > 0 && found.is_multiple_of(LOOK_UP_ROWS) && Instant::now() >= until {
                break;
            }
            let key = row_key(model, graph, plan, row);
            if let Some(embedding) = self.cache.get(&key) {
                embeddings.extend_from_slice(&embedding);
                continue;
            }
            misses += 1;
            embeddings.resize(embeddings.len() + size, 0.0);
            let nodes = model.manifest().bucket(graph.segments[segment].len());
            let queue = Queue { model: model.digest(), nodes, class: Class::Bulk };
            missing.entry(queue).or_default().push(Missing { row, key, segment });
        }
        let end = embeddings.len() / size;
        self.cache.looked_up(end - first, misses);
        looked_up.parts.extend(parts(missing));
        end == plan.rows.len()
    }

    /// Evaluates what is missing, or waits where another call does. Refuses that where the terms say so.
    pub(super) async fn complete(
        self: &Arc<Self>,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        plan: &Arc<Plan>,
        looked_up: LookedUp,
        terms: Terms,
    ) -> Result<Completed, EngineError> {
        let LookedUp { mut embeddings, parts } = looked_up;
        let missing: usize = parts.iter().map(|part| part.rows.len()).sum();
        let nodes: usize = parts.iter().map(|part| part.rows.len() * part.queue.nodes).sum();
        let work = self.backlog.add(model.digest(), graph.hash, nodes, terms)?;
        let size = model.manifest().embedding_size;
        let (results, mut received) = unbounded_channel();
        let call = Arc::new(Call {
            model: Arc::clone(model),
            graph: Arc::clone(graph),
            plan: Arc::clone(plan),
            results,
        });
        let mut receive = async || {
            let count = receive(&mut received, &mut embeddings, size).await?;
            work.done(nodes * count / missing);
            Ok::<_, EngineError>(count)
        };
        let (mut evaluated, mut awaited) = (0, 0);
        let class = if nodes > INTERACTIVE_NODES { Class::Bulk } else { terms.class };
        if class == Class::Interactive {
            self.pool.note_interactive();
        }
        for mut part in parts {
            part.queue.class = class;
            // Few enough that calls take turns, enough that every worker has a full block under way and one to take.
            while awaited > 2 * self.pool.workers() * part.queue.capacity() {
                awaited -= receive().await?;
            }
            awaited += part.rows.len();
            evaluated += self.submit(&call, part);
        }
        drop(call);
        while awaited > 0 {
            awaited -= receive().await?;
        }
        Ok(Completed { embeddings, evaluated })
    }

    /// Has rows evaluated; returns how many of them nobody else waits for.
    fn submit(self: &Arc<Self>, call: &Arc<Call>, part: Part) -> usize {
        let Part { queue, rows } = part;
        let mut queued = 0;
        let mut waiting = self.waiting();
        for missing in rows {
            let waiter = Waiter { call: Arc::clone(call), row: missing.row };
            // It may have been evaluated since it was looked up.
            match self.cache.get(&missing.key) {
                Some(embedding) => waiter.deliver(Ok(embedding)),
                None => queued += usize::from(waiting.add(queue, missing.key, waiter)),
            }
        }
        let tasks = waiting.start_tasks(queue, self.pool.workers());
        drop(waiting);
        (0..tasks).for_each(|_| self.spawn_evaluation(queue));
        queued
    }

    fn spawn_evaluation(self: &Arc<Self>, queue: Queue) {
        let embeddings = Arc::clone(self);
        self.pool.spawn(queue.class, move |worker| embeddings.evaluate_block(queue, worker));
    }

    /// Evaluates the next rows of a queue.
    fn evaluate_block(self: &Arc<Self>, queue: Queue, worker: Worker) {
        let is_small = queue.class == Class::Bulk && self.pool.is_interactive();
        let Taken { rows, gone, more } = self.waiting().take(queue, self.pool.workers(), is_small);
        drop(gone);
        if more {
            self.spawn_evaluation(queue);
        }
        if rows.is_empty() {
            return;
        }
        RunningBlock::new(self, queue, rows).run(worker);
    }

    /// The state is sound between any two of its operations, so a panic elsewhere does not spoil it.
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes at least one result; returns how many.
async fn receive(
    received: &mut UnboundedReceiver<Evaluated>,
    embeddings: &mut [f32],
    size: usize,
) -> Result<usize, EngineError> {
    const AT_ONCE: usize = 1024;
    let mut results = Vec::new();
    if received.recv_many(&mut results, AT_ONCE).await == 0 {
        return Err(WorkerFailed.into());
    }
    let count = results.len();
    for result in results {
        let (row, embedding) = result?;
        embeddings[row as usize * size..][..size].copy_from_slice(&embedding);
    }
    Ok(count)
}

fn row_key(model: &Model, graph: &SegmentedGraph, plan: &Plan, row: u32) -> RowKey {
    let mut hasher = blake3::Hasher::new();
    let row = plan.row(row, graph);
    hasher.update(&row.segment.digest.0);
    row.locals.hash(row.row, &mut hasher);
    RowKey { model: model.digest(), row: Digest(*hasher.finalize().as_bytes()) }
}
