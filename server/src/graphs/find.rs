//! Finds the graph of a call: in the cache, or in what the call sent.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hlorank_graph::{Digest, KernelMemory, SegmentedGraph};
use hlorank_proto::v1;

use super::{GraphCache, GraphOrigin, SentGraph, Source, Warning};
use crate::{
    admission::Place,
    call::{Bounds, Call, CallError, SMALL_PART_BYTES, work_on},
    compute::{Class, ComputePool},
    engine::Engine,
    memory::{HeldBytes, MemoryFull},
    metrics::Metrics,
};

/// Purpose of the digest of a batch.
const BATCH: &str = "hlorank 2026 sent batch";

/// Finds the graphs of calls: in the cache, or in what a call sent.
pub(crate) struct Graphs {
    cache: GraphCache,
    pool: Arc<ComputePool>,
    bounds: Bounds,
    metrics: Arc<Metrics>,
}

/// The graph of a call, and what was found out when it was read.
pub(crate) struct FoundGraph {
    pub(crate) graph: Arc<SegmentedGraph>,
    pub(crate) warnings: Vec<Warning>,
    /// The message of a program before fusion.
    pub(crate) program: Option<Arc<v1::Graph>>,
    /// Time for reading it; zero if it was cached.
    pub(crate) featurize: Duration,
    _held: Arc<HeldBytes>,
}

impl Graphs {
    /// Reads graphs on the pool of an engine, within bounds, into a cache.
    pub(crate) fn new(
        cache: GraphCache,
        engine: &Engine,
        bounds: Bounds,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            cache,
            pool: Arc::clone(engine.pool()),
            bounds,
            metrics,
        }
    }

    /// Sets the gauges to the current state.
    pub(crate) async fn sample(&self) {
        self.cache.sample().await;
    }

    /// Finds the graph of a call in the cache, or reads it.
    pub(crate) async fn find(
        &self,
        origin: GraphOrigin,
        call: &Call,
    ) -> Result<FoundGraph, CallError> {
        let found = match origin {
            GraphOrigin::Hash(hash) => {
                let cached = self.cache.get(hash).await;
                let source = cached.ok_or(CallError::GraphNotCached { hash })?;
                FoundGraph::from_source(&source, &call.place)?
            }
            GraphOrigin::Sent(graph) => {
                let (source, featurize) = self.read(graph, &call.place).await?;
                FoundGraph {
                    warnings: source.warnings.clone(),
                    featurize,
                    ..FoundGraph::from_source(&source, &call.place)?
                }
            }
        };
        call.record.found(&found.graph, found.featurize);
        Ok(found)
    }

    /// The memory of the kernels of all programs.
    pub(crate) fn kernels(&self) -> &Arc<KernelMemory> {
        self.cache.kernels()
    }

    /// Returns the encoded batch that a call names by its digest.
    pub(crate) async fn batch(&self, digest: Digest) -> Result<Bytes, CallError> {
        self.cache
            .batch(digest)
            .await
            .ok_or(CallError::UnknownBatch)
    }

    /// Keeps an encoded batch for later calls, and returns its digest.
    pub(crate) async fn keep_batch(&self, batch: Bytes) -> Result<Digest, CallError> {
        let hashed = batch.clone();
        let digest = move || Digest::of_parts(BATCH, [&hashed[..]]);
        let digest = work_on(&self.pool, batch.len(), SMALL_PART_BYTES, digest).await?;
        self.cache.keep_batch(digest, &batch).await;
        Ok(digest)
    }

    /// Returns a graph from the cache, without counting the lookup.
    pub(crate) async fn cached(&self, hash: Digest) -> Option<Arc<SegmentedGraph>> {
        self.cache.peek(hash).await
    }

    /// Returns the source of a graph from the cache, or reads it, and how long reading took.
    pub(crate) async fn read(
        &self,
        graph: SentGraph,
        place: &Place,
    ) -> Result<(Arc<Source>, Duration), CallError> {
        graph.check(&self.bounds)?;
        let class = graph.class();
        let limits = self.bounds.limits;
        let kernels = Arc::clone(self.kernels());
        let (digest, graph) = self.digest(graph).await?;
        // Stays zero if the cache has the graph, or another call reads it at the same time.
        let mut featurize = Duration::ZERO;
        let read = async {
            let place = place.clone();
            let read = self.pool.run(class, move |_| {
                let started = Instant::now();
                let read = graph.read(&limits, &kernels, |bytes| place.hold_beside(bytes));
                (read, started.elapsed())
            });
            let (read, spent) = read.await?.value;
            self.metrics.stages.featurize.record(spent);
            featurize = spent;
            let (source, _held) = read?;
            Ok::<_, CallError>(source)
        };
        let source = self.cache.get_or_read(digest, read).await;
        // All calls that wait for one read share its error.
        Ok((source.map_err(|error| error.as_ref().clone())?, featurize))
    }

    /// Returns the digest of a graph, and the graph.
    async fn digest(&self, graph: SentGraph) -> Result<(Digest, SentGraph), CallError> {
        let class = graph.class();
        match class {
            // Too little to hand to a worker, which may be in the middle of a run.
            Class::Interactive => Ok((graph.digest(), graph)),
            Class::Bulk => {
                let digest = move |_| (graph.digest(), graph);
                Ok(self.pool.run(class, digest).await?.value)
            }
        }
    }
}

impl FoundGraph {
    /// The graph of a source that was cached. Only the client that sends a graph gets its warnings.
    fn from_source(source: &Source, place: &Place) -> Result<Self, MemoryFull> {
        Ok(Self {
            graph: Arc::clone(&source.graph),
            warnings: Vec::new(),
            program: source.program.clone(),
            featurize: Duration::ZERO,
            _held: source.hold(place)?,
        })
    }
}
