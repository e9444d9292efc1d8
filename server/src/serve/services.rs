//! What the listeners serve, and what answers their calls.

use std::sync::Arc;

use tonic_health::pb::health_server::{Health, HealthServer};

use crate::{
    admission::Admission,
    call::{Bounds, Decoder},
    compute::ComputePool,
    engine::{CacheBytes, Engine},
    graphs::{GraphCache, Graphs},
    handlers::CostModel,
    learning::Learning,
    metrics::Metrics,
    model::ModelKeys,
    monitoring::{Monitored, Readiness},
    quality::{LiveQuality, Replays, RunningReplays},
    queries::{ModelSelection, Queries},
    refusal::REASONS,
    registry::{Registry, RegistrySettings},
    routers::Routers,
    runtime::Runtime,
    security::Credentials,
    settings::Settings,
    start_error::StartError,
    store::{MeasurementStore, StoreLocation},
    stored_measurements::StoredMeasurements,
    telemetry::{AccessLog, Observer, Tracing},
};

/// What the listeners serve.
pub(super) struct Services {
    pub(super) credentials: Arc<Credentials>,
    pub(super) parts: Parts,
    cost_model: CostModel,
    quality: Arc<LiveQuality>,
}

/// What answers calls.
pub(super) struct Parts {
    pub(super) registry: Arc<Registry>,
    engine: Arc<Engine>,
    pub(super) store: Option<Arc<MeasurementStore>>,
    pub(super) metrics: Arc<Metrics>,
}

/// The cache of segment tensors may have this fraction of the size of the graph cache, in addition to it.
const SEGMENTS_SHARE: u64 = 8;

impl Services {
    /// Reads the credentials, opens the store of measurements, and loads the models.
    pub(super) async fn open(settings: &Settings) -> Result<Self, StartError> {
        let metrics = Arc::new(Metrics::new(&REASONS));
        tokio::spawn(Arc::clone(&metrics).keep_up());
        // Credentials that cannot be used are reported before the models are loaded, which takes a
        // while.
        let credentials = Arc::new(Credentials::open(&settings.security, &metrics)?);
        tokio::spawn(Arc::clone(&credentials).poll(settings.poll_seconds));
        let parts = Parts::open(settings, metrics).await?;
        let cost_model = parts.cost_model(settings);
        Ok(Self {
            credentials,
            quality: parts.quality(&cost_model),
            parts,
            cost_model,
        })
    }

    /// Starts to replay stored measurements, if there are some and replays may take time.
    pub(super) fn start_replays(&self, settings: &Settings) -> Option<RunningReplays> {
        let share = settings.replay_share;
        let replays = Replays {
            quality: Arc::clone(&self.quality),
            store: self.parts.store.clone().filter(|_| share > 0.0)?,
            share,
        };
        Some(replays.start())
    }

    pub(super) fn routers<'a, H: Health>(
        &'a self,
        settings: &'a Settings,
        tracing: &Tracing,
        health: HealthServer<H>,
    ) -> Routers<'a, H> {
        Routers {
            delivery: settings.delivery,
            cost_model: &self.cost_model,
            pool: self.parts.engine.pool(),
            credentials: &self.credentials,
            observer: self.observer(settings, tracing),
            registry: &self.parts.registry,
            quality: &self.quality,
            health,
        }
    }

    pub(super) fn monitored(&self, readiness: &Arc<Readiness>) -> Monitored {
        let Parts {
            metrics, engine, ..
        } = &self.parts;
        Monitored::new(metrics, engine, &self.cost_model, readiness)
    }

    fn observer(&self, settings: &Settings, tracing: &Tracing) -> Arc<Observer> {
        let access_log = AccessLog {
            ratio: settings.access_log_sample,
        };
        Arc::new(Observer {
            metrics: Arc::clone(&self.parts.metrics),
            access_log,
            tracer: tracing.tracer(),
        })
    }
}

impl Parts {
    async fn open(settings: &Settings, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let pool = ComputePool::new(settings.workers)?.with_max_run(settings.max_run_seconds);
        let engine = Arc::new(engine(settings, Arc::new(pool), &metrics));
        let store = open_store(settings, &metrics).await?;
        let registry = open_registry(settings, Arc::clone(&engine), Arc::clone(&metrics)).await?;
        Ok(Self {
            registry,
            engine,
            store,
            metrics,
        })
    }

    /// Gives each part of a call what it needs.
    fn cost_model(&self, settings: &Settings) -> CostModel {
        let engine = || Arc::clone(&self.engine);
        let metrics = || Arc::clone(&self.metrics);
        let bounds = bounds(settings);
        let limits = bounds.limits;
        let graphs = self.graphs(settings, bounds);
        let stored =
            StoredMeasurements::new(self.store.clone(), engine(), Arc::clone(&graphs), limits);
        let stored = Arc::new(stored);
        CostModel {
            admission: self.admission(settings),
            decoder: Decoder::new(Arc::clone(self.engine.pool()), limits),
            models: Arc::new(ModelSelection::new(Arc::clone(&self.registry), metrics())),
            graphs,
            queries: Arc::new(Queries::new(engine(), limits, metrics())),
            learning: Arc::new(Learning::new(engine(), Arc::clone(&stored))),
            stored,
            bounds,
        }
    }

    fn graphs(&self, settings: &Settings, bounds: Bounds) -> Arc<Graphs> {
        let cache = GraphCache::new(settings.graph_cache_bytes, &self.metrics);
        let metrics = Arc::clone(&self.metrics);
        Arc::new(Graphs::new(cache, &self.engine, bounds, metrics))
    }

    fn admission(&self, settings: &Settings) -> Arc<Admission> {
        Arc::new(Admission::new(
            Arc::clone(&self.engine),
            settings.max_requests,
            settings.max_client_requests,
        ))
    }

    fn quality(&self, cost_model: &CostModel) -> Arc<LiveQuality> {
        Arc::new(LiveQuality::new(
            Arc::clone(&self.registry),
            Arc::clone(&cost_model.stored),
            Arc::clone(&self.metrics),
        ))
    }
}

fn bounds(settings: &Settings) -> Bounds {
    let message = settings.delivery.max_message_bytes;
    Bounds {
        limits: settings.limits.limits(),
        graph_bytes: message / 2,
        // A number and a score of each fill the message with the ranking.
        stream_configs: message / 8,
    }
}

fn engine(settings: &Settings, pool: Arc<ComputePool>, metrics: &Metrics) -> Engine {
    let cached = CacheBytes {
        embeddings: settings.embedding_cache_bytes,
        segments: settings.graph_cache_bytes / SEGMENTS_SHARE,
    };
    let engine = Engine::new(pool, cached, metrics);
    engine.bounded(settings.max_queued_nodes, settings.max_call_bytes)
}

/// Loads the models on a separate thread, because it takes a while.
async fn open_registry(
    settings: &Settings,
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
) -> Result<Arc<Registry>, StartError> {
    let library = settings.onnxruntime.clone();
    let settings = registry_settings(settings)?;
    let open = move || -> Result<Registry, StartError> {
        let runtime = Runtime::load(&library)?;
        Ok(Registry::open(settings, runtime, engine, metrics)?)
    };
    Ok(Arc::new(tokio::task::spawn_blocking(open).await??))
}

fn registry_settings(settings: &Settings) -> Result<RegistrySettings, StartError> {
    let keys = settings.models_key.0.as_deref();
    Ok(RegistrySettings {
        folder: settings.models.clone(),
        keys: keys.map(ModelKeys::read).transpose()?,
        defaults: settings.default_models(),
        workers: settings.workers.get(),
        retain: settings.retain_versions,
        max_slowdown: settings.max_slowdown,
        max_load: settings.max_load_seconds,
        poll: settings.poll_seconds,
    })
}

/// Opens the file of measurements, if there is one, on a separate thread, because checking it takes a while.
async fn open_store(
    settings: &Settings,
    metrics: &Metrics,
) -> Result<Option<Arc<MeasurementStore>>, StartError> {
    let limit = settings.max_measurements_bytes;
    let series = Arc::clone(&metrics.store);
    let store = match settings.measurements.clone() {
        StoreLocation::Off => return Ok(None),
        StoreLocation::Database(url) => MeasurementStore::connect(&url, limit, series).await?,
        StoreLocation::File(path) => {
            let open = move || MeasurementStore::open(&path, limit, series);
            tokio::task::spawn_blocking(open).await??
        }
    };
    Ok(Some(Arc::new(store)))
}
