//! Scores configurations: every distinct thing is evaluated once.
//!
//! [`Engine::score`] is the one entry point. Within a call, equal configurations are one, and so are equal pairs of
//! segment and local configuration (rows). Across calls, the embedding of a row is evaluated once as long as it is in
//! the cache. Work is cut into blocks that go to the compute pool one by one, so that calls take turns, and dropping
//! the future stops what has not started.

mod backlog;
mod block;
mod embeddings;
mod plan;
mod prepare;
mod ranking;
mod recent;
mod sums;
mod whole_graph;

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

pub use backlog::Terms;
use futures::{StreamExt, TryStreamExt, stream};
use hlorank_graph::{Configurations, Digest, Pad, SegmentedGraph, TooManyRows};
use metrics::Gauge;
pub use ranking::rank;

use self::{
    backlog::Backlog,
    block::ROW_MULTIPLE,
    embeddings::{EmbeddingCache, Embeddings, LookedUp},
    plan::Plan,
    prepare::{Prepared, check_rows},
    recent::{RecentBatch, RecentBatches},
    sums::SumTree,
};
use crate::{
    compute::{Class, ComputePool, Computed, Worker, WorkerFailed},
    memory::{Memory, MemoryFull},
    metrics::{CacheSeries, LoadSeries, Metrics, set},
    model::{Model, ModelFailed, ModelKind},
    outcome::{Evaluation, Stages},
};

/// Evaluates models on the compute pool.
pub struct Engine {
    pool: Arc<ComputePool>,
    backlog: Arc<Backlog>,
    memory: Arc<Memory>,
    embeddings: Arc<Embeddings>,
    recent: RecentBatches,
}

/// Why there are no scores.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EngineError {
    /// The model needs features padded with −1, and the graph came padded with 0.
    #[error(
        "model `{model}` needs features padded with -1, but the graph came as features padded with 0; send the HLO \
         module, or features with pad_value -1"
    )]
    PadUnknown {
        /// The model.
        model: String,
    },
    /// The batch would take too much memory.
    #[error(transparent)]
    TooManyRows(#[from] TooManyRows),
    /// The model gave NaN or infinity.
    #[error(
        "model `{model}` gave {score} for configuration {config}: the graph or the configuration may lie far outside \
         what it was trained on; leave the configuration out, or name another model"
    )]
    InvalidOutput {
        /// The model.
        model: String,
        /// The first such configuration.
        config: usize,
        /// Its score.
        score: f32,
    },
    /// The deadline will be over before the batch is scored.
    #[error(
        "scoring these configurations takes about {estimate:.1?}, beside the calls in progress, and grpc-timeout leaves \
         {left:.1?}; allow more, send fewer at a time, or set allow_partial"
    )]
    DeadlineTooShort {
        /// How long it would take.
        estimate: Duration,
        /// What is left.
        left: Duration,
    },
    /// Other calls wait for too much already.
    #[error(
        "calls wait for {queued} evaluated nodes already, of at most {limit}, and scoring these configurations takes \
         {}; send fewer at a time, try again later, or raise --max-queued-nodes on the server",
        nodes.map_or("more".to_owned(), |nodes| nodes.to_string())
    )]
    QueueFull {
        /// Rows of this call, times the nodes of each; `None` where they were not counted.
        nodes: Option<usize>,
        /// Those of all calls.
        queued: usize,
        /// Nodes that may wait.
        limit: usize,
        /// How long until there is room; zero where that is not known.
        room_in: Duration,
    },
    /// Calls hold too much memory already.
    #[error(transparent)]
    MemoryFull(#[from] MemoryFull),
    /// ONNX Runtime failed.
    #[error(transparent)]
    Model(#[from] ModelFailed),
    /// A worker panicked.
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

/// Distinct configurations that the head takes at a time, and embeddings that are added up for them: some
/// milliseconds.
const HEAD_CONFIGS: usize = 2048;
const HEAD_EMBEDDINGS: usize = 1 << 18;

impl Engine {
    /// Uses a pool whose workers each have a session of every model, and keeps at most `cache_bytes` bytes of
    /// embeddings.
    #[must_use]
    pub fn new(pool: Arc<ComputePool>, cache_bytes: u64, metrics: &Metrics) -> Self {
        let cache = EmbeddingCache::new(cache_bytes, metrics.embedding_cache.clone());
        Self::with_cache(pool, Arc::new(cache), metrics.load.waiting_rows.clone())
    }

    /// Evaluates everything anew, and counts nothing.
    #[must_use]
    pub fn without_cache(pool: Arc<ComputePool>) -> Self {
        Self::with_cache(pool, Arc::new(EmbeddingCache::new(0, CacheSeries::noop())), Gauge::noop())
    }

    fn with_cache(pool: Arc<ComputePool>, cache: Arc<EmbeddingCache>, waiting_rows: Gauge) -> Self {
        let backlog = Backlog::new(pool.workers());
        let embeddings = Embeddings::new(Arc::clone(&pool), cache, Arc::clone(&backlog), waiting_rows);
        let memory = Memory::new(usize::MAX);
        Self { embeddings: Arc::new(embeddings), backlog, memory, pool, recent: RecentBatches::new(0) }
    }

    /// Remembers the last batch of each of so many graphs for [`Self::recompute`].
    #[must_use]
    pub fn remembering(self, graphs: usize) -> Self {
        Self { recent: RecentBatches::new(graphs), ..self }
    }

    /// Lets so many nodes wait to be evaluated, rows times the nodes of each, and calls hold so many bytes.
    #[must_use]
    pub fn bounded(self, nodes: usize, bytes: usize) -> Self {
        self.backlog.set_limit(nodes);
        Self { memory: Memory::new(bytes), ..self }
    }

    /// What calls hold.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// How long half of what calls wait for takes; zero while that is not known.
    #[must_use]
    pub fn half_done_in(&self) -> Duration {
        self.backlog.half_done_in()
    }

    /// Sets the gauges of what there is now.
    pub fn sample(&self, load: &LoadSeries) {
        self.embeddings.sample();
        let (nodes, limit) = self.backlog.nodes();
        set(&load.queued_nodes, nodes as u64);
        set(&load.max_queued_nodes, limit as u64);
        let (held, limit) = self.memory.bytes();
        set(&load.call_bytes, held as u64);
        set(&load.max_call_bytes, limit as u64);
    }

    /// Drops the embeddings of a model, by its digest, that nobody uses any more.
    pub fn forget(&self, model: Digest) {
        self.backlog.forget(model);
        self.embeddings.cache().forget(model);
    }

    /// Evaluates the rows that versions of a model were asked for last by another version of it, on a pool beside the
    /// one that serves; returns of how many graphs.
    pub async fn recompute(
        &self,
        model: &Arc<Model>,
        beside: Arc<ComputePool>,
    ) -> Result<usize, EngineError> {
        let recent = self.recent.of_model(&model.manifest().name);
        let cache = Arc::clone(self.embeddings.cache());
        let backlog = Backlog::new(beside.workers());
        let embeddings = Arc::new(Embeddings::new(beside, cache, backlog, Gauge::noop()));
        let (graphs, kind) = (recent.len(), model.manifest().kind());
        for RecentBatch { graph, plan, .. } in recent {
            let fits = check_pad(model, &graph).is_ok() && check_rows(model, &plan).is_ok();
            if kind == ModelKind::Segment && fits {
                let mut looked_up = LookedUp::default();
                while !embeddings.look_up(model, &graph, &plan, &mut looked_up, Instant::now()) {}
                embeddings.complete(model, &graph, &plan, looked_up, Terms::default()).await?;
            }
        }
        Ok(graphs)
    }

    /// Scores each of the configurations that `read`, which runs on a worker, gives: they must be of the graph's task
    /// and fit its slots. Refuses them before anything is evaluated where the terms say so.
    pub async fn score<E: From<EngineError> + Send + 'static>(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        read: impl FnOnce() -> Result<Configurations, E> + Send + 'static,
        terms: Terms,
    ) -> Result<Evaluation, E> {
        if let ModelKind::WholeGraph { chunk_configs } = model.manifest().kind() {
            return self.score_whole_graph(model, graph, read, chunk_configs, terms).await;
        }
        check_pad(model, graph)?;
        let Computed { value: prepared, waited } = self.prepare(model, graph, read, terms).await?;
        Ok(self.evaluate(model, graph, prepared, waited, terms).await?)
    }

    async fn evaluate(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        Prepared { plan, looked_up, held }: Prepared,
        waited: Duration,
        terms: Terms,
    ) -> Result<Evaluation, EngineError> {
        let planned = Instant::now();
        let completed = self.embeddings.complete(model, graph, &plan, looked_up, terms).await?;
        self.recent.remember(model, graph, &plan);
        let encoded = Instant::now();
        let distinct_scores = self.score_sums(model, &plan, completed.embeddings, terms.class).await?;
        drop(held);
        let reuse = plan.reuse(completed.evaluated);
        let scores = match terms.class {
            // Too little to hand to a worker.
            Class::Interactive => plan.fan_out(&distinct_scores),
            Class::Bulk => self.pool.run(Class::Bulk, move |_| plan.fan_out(&distinct_scores)).await?.value,
        };
        check_scores(model, &scores)?;
        let stages = Stages { waited, planned, encoded, scored: Instant::now() };
        Ok(Evaluation { scores, reuse, stages })
    }

    /// The score of every distinct configuration.
    async fn score_sums(
        &self,
        model: &Arc<Model>,
        plan: &Arc<Plan>,
        embeddings: Vec<f32>,
        class: Class,
    ) -> Result<Vec<f32>, EngineError> {
        let (model, plan) = (Arc::clone(model), Arc::clone(plan));
        let (count, size) = (plan.distinct_configs(), model.manifest().embedding_size);
        let at_once = (HEAD_EMBEDDINGS / plan.occurrences()).clamp(ROW_MULTIPLE, HEAD_CONFIGS);
        let score = move |worker, configs: Range<usize>| {
            let count = configs.len();
            let mut tree = SumTree::new(&embeddings, size);
            let mut sums = Vec::with_capacity(count.next_multiple_of(ROW_MULTIPLE) * size);
            plan.rows_of(configs).for_each(|rows| sums.extend_from_slice(tree.sum(rows)));
            sums.resize(count.next_multiple_of(ROW_MULTIPLE) * size, 0.0);
            let mut scores = model.score(worker, &sums)?;
            scores.truncate(count);
            Ok(scores)
        };
        self.score_in_chunks(count, at_once, class, score).await
    }

    /// The scores of `0..count`, so many at a time.
    async fn score_in_chunks(
        &self,
        count: usize,
        at_once: usize,
        class: Class,
        score: impl Fn(Worker, Range<usize>) -> Result<Vec<f32>, ModelFailed> + Send + Sync + 'static,
    ) -> Result<Vec<f32>, EngineError> {
        let score = Arc::new(score);
        let chunks = (0..count).step_by(at_once).map(|start| {
            let (score, chunk) = (Arc::clone(&score), start..count.min(start + at_once));
            let scored = self.pool.run(class, move |worker| score(worker, chunk));
            async { Ok::<_, EngineError>(scored.await?.value?) }
        });
        // Enough that no worker is idle.
        let chunks: Vec<Vec<f32>> =
            stream::iter(chunks).buffered(2 * self.pool.workers()).try_collect().await?;
        Ok(chunks.concat())
    }
}

fn check_pad(model: &Model, graph: &SegmentedGraph) -> Result<(), EngineError> {
    let pad: Pad = model.manifest().pad();
    if graph.segments.iter().all(|segment| segment.can_pad(pad)) {
        return Ok(());
    }
    Err(EngineError::PadUnknown { model: model.manifest().name.clone() })
}

fn check_scores(model: &Model, scores: &[f32]) -> Result<(), EngineError> {
    match scores.iter().position(|score| !score.is_finite()) {
        None => Ok(()),
        Some(config) => Err(EngineError::InvalidOutput {
            model: model.manifest().name.clone(),
            config,
            score: scores[config],
        }),
    }
}
