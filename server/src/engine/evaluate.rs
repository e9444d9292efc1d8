use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, MAX_SEGMENT_NODES, SegmentedGraph};

use super::{
    BatchPart, EngineError, Terms,
    backlog::Backlog,
    resources::Resources,
    segment::{self, CacheBytes, EmbeddingCache, Embeddings},
    whole_graph,
};
use crate::{
    compute::{Class, ComputePool},
    memory::{HeldBytes, Memory},
    metrics::{CacheSize, LoadSeries, Metrics, set},
    model::{LoadedModel, Model, SegmentModel},
    outcome::{Evaluation, KernelTime, Reuse, Stages},
};

/// Evaluates models on the compute pool.
pub struct Engine {
    resources: Resources,
    embeddings: Arc<Embeddings>,
}

impl Engine {
    /// Uses a pool whose workers each have sessions of every model, and caches of at most these sizes.
    pub fn new(pool: Arc<ComputePool>, cached: CacheBytes, metrics: &Metrics) -> Self {
        let cache = EmbeddingCache::new(cached, metrics.embedding_cache.clone());
        let backlog = Backlog::new(&pool);
        let embeddings = Embeddings::new(
            Arc::clone(&pool),
            cache,
            Arc::clone(&backlog),
            metrics.load.waiting_rows.clone(),
        );
        // Without limits, which an engine that validates models does not need. `bounded` sets them
        // for the engine that serves.
        let resources = Resources {
            pool,
            backlog,
            memory: Memory::new(usize::MAX),
        };
        Self {
            resources,
            embeddings: Arc::new(embeddings),
        }
    }

    /// Evaluates everything anew, and counts nothing.
    pub fn without_cache(pool: Arc<ComputePool>) -> Self {
        Self::new(pool, CacheBytes::default(), &Metrics::default())
    }

    /// Limits the work that may be queued, in padded nodes, and the bytes that calls may hold.
    #[must_use]
    pub fn bounded(self, nodes: usize, bytes: usize) -> Self {
        self.resources.backlog.set_limit(nodes);
        // `self` is taken by value, so no call holds bytes of the memory that is replaced.
        Self {
            resources: Resources {
                memory: Memory::new(bytes),
                ..self.resources
            },
            ..self
        }
    }

    /// The memory that calls hold.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.resources.memory
    }

    /// The threads that evaluate.
    pub fn pool(&self) -> &Arc<ComputePool> {
        &self.resources.pool
    }

    /// Estimates how long half of the queued work takes; zero if that is not known.
    pub fn half_done_in(&self) -> Duration {
        self.resources.backlog.half_done_in()
    }

    /// Sets the gauges to the current state.
    pub fn sample(&self, load: &LoadSeries, segments: &CacheSize) {
        self.embeddings.sample(segments);
        let (nodes, limit) = self.resources.backlog.nodes();
        set(&load.queued_nodes, nodes as u64);
        set(&load.max_queued_nodes, limit as u64);
        let (held, limit) = self.resources.memory.bytes();
        set(&load.call_bytes, held as u64);
        set(&load.max_call_bytes, limit as u64);
        let pool = self.pool();
        set(&load.queued_tasks, pool.queued() as u64);
        set(&load.threads, pool.workers() as u64);
        load.worker_panics.absolute(pool.panics());
    }

    /// Drops the embeddings of a model, by its digest, that no call uses any more.
    pub fn forget(&self, model: Digest) {
        self.resources.backlog.forget(model);
        self.embeddings.cache.forget(model);
    }

    /// Refuses a batch that would be refused whatever its configurations are, so that it need not be read: the model cannot
    /// take the graph, or a large batch comes while the queue is full.
    pub fn check(
        &self,
        model: &Model,
        graph: &SegmentedGraph,
        terms: Terms,
    ) -> Result<(), EngineError> {
        match &model.loaded {
            LoadedModel::Segment(model) => segment::check(&self.resources, model, graph, terms),
            LoadedModel::WholeGraph(model) => whole_graph::check(&self.resources, model, graph),
            LoadedModel::Absent => Ok(()),
        }
    }

    /// Scores configurations, which must have the graph's task and slots. They are refused before anything is evaluated if
    /// the terms do not allow them.
    pub async fn score(
        &self,
        model: &Model,
        graph: &Arc<SegmentedGraph>,
        configurations: impl Into<BatchPart>,
        terms: Terms,
    ) -> Result<Evaluation, EngineError> {
        let part = configurations.into();
        match &model.loaded {
            LoadedModel::Segment(model) => {
                // The memory of another cut is held until the scores are there.
                let (graph, _held) = self.cut_for(model, graph, terms.class).await?;
                segment::score(
                    &self.resources,
                    &self.embeddings,
                    model,
                    &graph,
                    part,
                    terms,
                )
                .await
            }
            LoadedModel::WholeGraph(model) => {
                self.pool().need_worker().await;
                whole_graph::score(&self.resources, model, graph, part, terms).await
            }
            // Counting the distinct configurations of a large batch takes long, hence on a worker.
            LoadedModel::Absent => {
                let zeros = move || zeros(part);
                Ok(self.pool().run_short(terms.class, zeros).await?.value)
            }
        }
    }

    /// Returns the kernels of each of a few configurations of a program before fusion, and their scores. Configurations that
    /// get no score have none. Models of whole graphs know no kernels.
    pub async fn kernels(
        &self,
        model: &Model,
        graph: &Arc<SegmentedGraph>,
        configurations: impl Into<BatchPart>,
        terms: Terms,
    ) -> Result<Vec<Vec<KernelTime>>, EngineError> {
        let part = configurations.into();
        match &model.loaded {
            LoadedModel::Segment(model) => {
                segment::kernels(&self.resources, &self.embeddings, model, graph, part, terms).await
            }
            LoadedModel::WholeGraph(_) | LoadedModel::Absent => Ok(Vec::new()),
        }
    }

    /// Returns a graph in segments of the model's size, and the memory that they take. Only a model with larger segments
    /// than usual needs another cut, and only of a kernel that was cut.
    async fn cut_for(
        &self,
        model: &SegmentModel,
        graph: &Arc<SegmentedGraph>,
        class: Class,
    ) -> Result<(Arc<SegmentedGraph>, Option<HeldBytes>), EngineError> {
        let nodes = model.settings.max_segment_nodes;
        if nodes == MAX_SEGMENT_NODES || graph.occurrences.len() <= 1 {
            return Ok((Arc::clone(graph), None));
        }
        self.pool().need_worker().await;
        // Another cut has the same nodes in other segments, so it takes about as much memory.
        let held = self.resources.memory.hold(graph.bytes())?;
        let whole = graph.whole.clone();
        let cut = move |_| SegmentedGraph::cut(&whole, nodes);
        let cut = self.pool().run(class, cut).await?.value;
        Ok((Arc::new(cut), Some(held)))
    }
}

/// Gives every configuration the score 0, because there is no model.
fn zeros(part: BatchPart) -> Evaluation {
    let planned = Instant::now();
    let configurations = part.into_configurations();
    let configs = configurations.len();
    let reuse = Reuse {
        configs,
        distinct_configs: configurations.batch().distinct().first.len(),
        ..Reuse::default()
    };
    let stages = Stages {
        waited: Duration::ZERO,
        planned,
        encoded: planned,
        scored: Instant::now(),
    };
    Evaluation {
        scores: vec![0.0; configs],
        reuse,
        unscored: None,
        stages,
    }
}
