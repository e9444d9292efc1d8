use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{SegmentedGraph, Task};

use super::{
    Bounds, GraphOrigin, SentGraph, SessionError,
    admission::{Admission, AdmissionLimit, Caller},
    call::Place,
};
use crate::{
    engine::Engine,
    graphs::{GraphCache, Source, Warning},
    metrics::{Metrics, ModelSeries, set},
    registry::{Registry, Selection, Wanted},
    telemetry::CallRecord,
};

/// Opens the sessions of a server. Clones share everything.
#[derive(Clone)]
pub struct Sessions(Arc<Shared>);

struct Shared {
    registry: Arc<Registry>,
    engine: Arc<Engine>,
    graphs: GraphCache,
    admission: Admission,
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
    /// Time for reading it; zero if it was cached.
    pub(crate) featurize: Duration,
}

impl Sessions {
    /// Uses the models of a registry, an engine, and a cache of graphs.
    #[must_use]
    pub fn new(
        registry: Arc<Registry>,
        engine: Arc<Engine>,
        graphs: GraphCache,
        bounds: Bounds,
        metrics: Arc<Metrics>,
    ) -> Self {
        let admission = Admission::new(bounds.requests, bounds.client_requests);
        Self(Arc::new(Shared { registry, engine, graphs, admission, bounds, metrics }))
    }

    /// Sets the gauges to the current state.
    pub async fn sample(&self) {
        let Shared { engine, graphs, admission, bounds, metrics, .. } = &*self.0;
        graphs.sample().await;
        let load = &metrics.load;
        engine.sample(load);
        set(&load.requests, admission.requests().into());
        set(&load.max_requests, bounds.requests.into());
        let pool = engine.pool();
        set(&load.queued_tasks, pool.queued() as u64);
        set(&load.threads, pool.workers() as u64);
        load.worker_panics.absolute(pool.panics());
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.0.engine
    }

    pub(crate) fn bounds(&self) -> &Bounds {
        &self.0.bounds
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Admits a call, or rejects it immediately if a limit is reached.
    pub(crate) fn admit(&self, caller: Caller) -> Result<Place, SessionError> {
        let admitted = self.0.admission.admit(caller).map_err(|reached| match reached {
            AdmissionLimit::Server(limit) => {
                SessionError::Overloaded { limit, half_done_in: self.0.engine.half_done_in() }
            }
            AdmissionLimit::Client(limit) => SessionError::ClientLimit { limit },
        })?;
        Ok(Place::new(admitted, self.0.engine.memory().hold_nothing()))
    }

    /// Selects the model of a call: the default of the task if the name is empty.
    pub(crate) fn select(
        &self,
        name: &str,
        wanted: &Wanted,
        task: Task,
        record: &CallRecord,
    ) -> Result<SelectedModel, SessionError> {
        let selection = self.0.registry.select(name, wanted, task)?;
        let series = self.0.metrics.model(selection.name());
        record.selected(&series);
        Ok(SelectedModel { selection, series })
    }

    /// Finds the graph of a call in the cache, or reads it.
    pub(crate) async fn find(
        &self,
        origin: GraphOrigin,
        record: &CallRecord,
    ) -> Result<FoundGraph, SessionError> {
        let found = match origin {
            GraphOrigin::Hash(hash) => {
                let graph = self.0.graphs.get(hash).await.ok_or(SessionError::GraphNotCached { hash })?;
                FoundGraph { graph, warnings: Vec::new(), featurize: Duration::ZERO }
            }
            GraphOrigin::Sent(graph) => {
                let (source, featurize) = self.read(graph).await?;
                let (graph, warnings) = (Arc::clone(&source.graph), source.warnings.clone());
                FoundGraph { graph, warnings, featurize }
            }
        };
        record.found(&found.graph, found.featurize);
        Ok(found)
    }

    /// Returns the source of a graph from the cache, or reads it, and how long reading took.
    pub(crate) async fn read(&self, graph: SentGraph) -> Result<(Arc<Source>, Duration), SessionError> {
        let Shared { engine, graphs, bounds, metrics, .. } = &*self.0;
        graph.check(bounds)?;
        let (class, limits) = (graph.class(), bounds.limits);
        let digested = engine.pool().run(class, move |_| (graph.digest(), graph)).await?;
        let (digest, graph) = digested.value;
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
