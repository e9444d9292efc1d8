use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, Graph, SegmentedGraph, Task};
use hlorank_proto::v1;

use super::{Bounds, GraphOrigin, SentGraph, SessionError};
use crate::{
    adaptation::AdaptedCache,
    compute::{Class, ComputePool},
    engine::Engine,
    graphs::{GraphCache, Source, Warning},
    metrics::{Metrics, ModelSeries, set},
    model::Model,
    registry::{Registry, Selection, Wanted},
    store::MeasurementStore,
    telemetry::CallRecord,
};

/// Opens the sessions of a server. Clones share everything.
#[derive(Clone)]
pub struct Sessions(Arc<Shared>);

struct Shared {
    registry: Arc<Registry>,
    engine: Arc<Engine>,
    graphs: GraphCache,
    store: Option<Arc<MeasurementStore>>,
    adapted: Arc<AdaptedCache>,
    bounds: Bounds,
    metrics: Arc<Metrics>,
}

/// The versions of a model that may answer a call. The graph decides which of them does.
pub(crate) struct SelectedModel {
    pub(super) selection: Selection,
    pub(super) series: Arc<ModelSeries>,
}

/// The graph of a call, and what was found out when it was read.
pub(crate) struct FoundGraph {
    pub(crate) graph: Arc<SegmentedGraph>,
    pub(crate) warnings: Vec<Warning>,
    /// The message of a program before fusion.
    pub(super) program: Option<Arc<v1::Graph>>,
    /// Time for reading it; zero if it was cached.
    pub(crate) featurize: Duration,
}

impl Sessions {
    /// Uses the models of a registry, an engine, a cache of graphs and a store of measurements, if there is one.
    #[must_use]
    pub fn new(
        registry: Arc<Registry>,
        engine: Arc<Engine>,
        graphs: GraphCache,
        store: Option<Arc<MeasurementStore>>,
        bounds: Bounds,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self(Arc::new(Shared {
            registry,
            engine,
            graphs,
            store,
            adapted: Arc::default(),
            bounds,
            metrics,
        }))
    }

    /// Sets the gauges to the current state.
    pub async fn sample(&self) {
        let Shared {
            engine,
            graphs,
            metrics,
            ..
        } = &*self.0;
        graphs.sample().await;
        let load = &metrics.load;
        engine.sample(load);
        let pool = engine.pool();
        set(&load.queued_tasks, pool.queued() as u64);
        set(&load.threads, pool.workers() as u64);
        load.worker_panics.absolute(pool.panics());
    }

    /// The threads that compute.
    pub(crate) fn pool(&self) -> &ComputePool {
        self.0.engine.pool()
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    /// The store of measurements, if there is one.
    pub(super) fn kept(&self) -> Option<&Arc<MeasurementStore>> {
        self.0.store.as_ref()
    }

    /// Another model that learned from the same data, if one serves.
    pub(super) fn second_opinion(&self, model: &Model) -> Option<Arc<Model>> {
        self.0.registry.second_opinion(model)
    }

    /// What earlier calls learned.
    pub(super) fn adapted(&self) -> &Arc<AdaptedCache> {
        &self.0.adapted
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Selects the model of a call: the default of the task if the name is empty.
    pub(crate) fn select(
        &self,
        name: &str,
        wanted: &Wanted,
        task: Task,
        record: &CallRecord,
    ) -> Result<SelectedModel, SessionError> {
        Ok(self.selected(self.0.registry.select(name, wanted, task)?, record))
    }

    /// Selects the model of a call about a graph: the default of its task or feature set if the name is empty.
    pub(crate) fn select_for(
        &self,
        name: &str,
        wanted: &Wanted,
        graph: &Graph,
        record: &CallRecord,
    ) -> Result<SelectedModel, SessionError> {
        let Some(features) = graph.feature_graph() else {
            return self.select(name, wanted, graph.task(), record);
        };
        Ok(self.selected(
            self.0
                .registry
                .select_for_set(name, wanted, features.set())?,
            record,
        ))
    }

    fn selected(&self, selection: Selection, record: &CallRecord) -> SelectedModel {
        let series = self.0.metrics.model(selection.name());
        record.selected(&series);
        SelectedModel { selection, series }
    }

    /// Finds the graph of a call in the cache, or reads it.
    pub(crate) async fn find(
        &self,
        origin: GraphOrigin,
        record: &CallRecord,
    ) -> Result<FoundGraph, SessionError> {
        let found = match origin {
            GraphOrigin::Hash(hash) => {
                let source = self
                    .0
                    .graphs
                    .get(hash)
                    .await
                    .ok_or(SessionError::GraphNotCached { hash })?;
                let (graph, program) = (Arc::clone(&source.graph), source.program.clone());
                FoundGraph {
                    graph,
                    warnings: Vec::new(),
                    program,
                    featurize: Duration::ZERO,
                }
            }
            GraphOrigin::Sent(graph) => {
                let (source, featurize) = self.read(graph).await?;
                let (graph, program) = (Arc::clone(&source.graph), source.program.clone());
                FoundGraph {
                    graph,
                    warnings: source.warnings.clone(),
                    program,
                    featurize,
                }
            }
        };
        record.found(&found.graph, found.featurize);
        Ok(found)
    }

    /// Returns a graph from the cache, without counting the lookup.
    pub(super) async fn cached(&self, hash: Digest) -> Option<Arc<SegmentedGraph>> {
        self.0.graphs.peek(hash).await
    }

    /// The models that serve.
    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// Returns the source of a graph from the cache, or reads it, and how long reading took.
    pub(crate) async fn read(
        &self,
        graph: SentGraph,
    ) -> Result<(Arc<Source>, Duration), SessionError> {
        let Shared {
            engine,
            graphs,
            bounds,
            metrics,
            ..
        } = &*self.0;
        graph.check(bounds)?;
        let (class, limits) = (graph.class(), bounds.limits);
        let (digest, graph) = match class {
            // Too little to hand to a worker, which may be in the middle of a run.
            Class::Interactive => (graph.digest(), graph),
            Class::Bulk => {
                engine
                    .pool()
                    .run(class, move |_| (graph.digest(), graph))
                    .await?
                    .value
            }
        };
        let mut featurize = Duration::ZERO;
        let read = async {
            let read = engine.pool().run(class, move |_| {
                let started = Instant::now();
                (graph.read(&limits), started.elapsed())
            });
            let (source, spent) = read.await?.value;
            metrics.stages.featurized(spent);
            featurize = spent;
            source.map_err(SessionError::Graph)
        };
        let source = graphs.get_or_read(digest, read).await;
        Ok((source.map_err(|error| error.as_ref().clone())?, featurize))
    }
}
