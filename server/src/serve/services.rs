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
    leases::Leases,
    metrics::Metrics,
    model::ModelKeys,
    monitoring::{MonitoringSources, Readiness},
    quality::{LiveQuality, Replays, RunningReplays},
    queries::{ModelSelection, Queries},
    refusal::REASONS,
    registry::{Registry, RegistrySettings},
    routers::Routers,
    runtime::Runtime,
    security::Credentials,
    settings::Settings,
    start_error::StartError,
    store::{MeasurementStore, RunningRetention, StoreLocation},
    stored_measurements::StoredMeasurements,
    telemetry::{Observer, Tracing},
};

/// What the listeners serve, and what answers their calls.
pub(super) struct Services {
    pub(super) credentials: Arc<Credentials>,
    pub(super) registry: Arc<Registry>,
    pub(super) store: Option<Arc<MeasurementStore>>,
    pub(super) metrics: Arc<Metrics>,
    engine: Arc<Engine>,
    cost_model: CostModel,
    quality: Arc<LiveQuality>,
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
        let pool = ComputePool::new(settings.workers)?.with_max_run(settings.max_run_seconds);
        let cached = CacheBytes {
            embeddings: settings.embedding_cache_bytes,
            segments: settings.graph_cache_bytes / SEGMENTS_SHARE,
        };
        let engine = Engine::new(Arc::new(pool), cached, &metrics)
            .bounded(settings.max_queued_nodes, settings.max_call_bytes);
        let engine = Arc::new(engine);
        let store = open_store(settings, &metrics).await?;
        let registry = open_registry(settings, Arc::clone(&engine), Arc::clone(&metrics)).await?;
        let cost_model = cost_model(settings, &engine, store.clone(), &registry, &metrics);
        let quality = LiveQuality::new(
            Arc::clone(&registry),
            Arc::clone(&cost_model.stored),
            Arc::clone(&metrics),
        );
        Ok(Self {
            credentials,
            registry,
            store,
            metrics,
            engine,
            cost_model,
            quality: Arc::new(quality),
        })
    }

    /// Starts to replay stored measurements, if there are some and replays may take time.
    pub(super) fn start_replays(&self, settings: &Settings) -> Option<RunningReplays> {
        let share = settings.replay_share;
        let replays = Replays {
            quality: Arc::clone(&self.quality),
            store: self.store.clone().filter(|_| share > 0.0)?,
            share,
        };
        Some(replays.start())
    }

    /// Starts to delete what expires, if there are measurements and they expire.
    pub(super) fn start_retention(&self, settings: &Settings) -> Option<RunningRetention> {
        let keep = settings.keep_measurements_for.0?;
        let store = self.store.clone()?;
        Some(RunningRetention::start(store, keep.0))
    }

    pub(super) fn routers<'a, H: Health>(
        &'a self,
        settings: &'a Settings,
        tracing: &Tracing,
        health: HealthServer<H>,
    ) -> Routers<'a, H> {
        let observer = Observer {
            metrics: Arc::clone(&self.metrics),
            tracer: tracing.tracer(),
        };
        Routers {
            delivery: settings.delivery,
            cost_model: &self.cost_model,
            pool: self.engine.pool(),
            credentials: &self.credentials,
            observer: Arc::new(observer),
            registry: &self.registry,
            quality: &self.quality,
            health,
        }
    }

    pub(super) fn monitored(&self, readiness: &Arc<Readiness>) -> MonitoringSources {
        MonitoringSources::new(&self.metrics, &self.engine, &self.cost_model, readiness)
    }
}

/// Gives each part of a call what it needs.
fn cost_model(
    settings: &Settings,
    engine: &Arc<Engine>,
    store: Option<Arc<MeasurementStore>>,
    registry: &Arc<Registry>,
    metrics: &Arc<Metrics>,
) -> CostModel {
    let message = settings.delivery.max_message_bytes;
    let limits = settings.limits.limits();
    let bounds = Bounds {
        limits,
        graph_bytes: message / 2,
        // A number and a score of each fill the message with the ranking.
        stream_configs: message / 8,
    };
    let cache = GraphCache::new(settings.graph_cache_bytes, metrics);
    let graphs = Arc::new(Graphs::new(cache, engine, bounds, Arc::clone(metrics)));
    let stored = StoredMeasurements::new(
        store.clone(),
        Arc::clone(engine),
        Arc::clone(&graphs),
        limits,
    );
    let stored = Arc::new(stored);
    let admission = Admission::new(
        Arc::clone(engine),
        settings.max_requests,
        settings.max_client_requests,
    );
    let models = ModelSelection::new(Arc::clone(registry), Arc::clone(metrics));
    let queries = Queries::new(Arc::clone(engine), limits, Arc::clone(metrics));
    CostModel {
        admission: Arc::new(admission),
        decoder: Decoder::new(Arc::clone(engine.pool()), limits),
        models: Arc::new(models),
        graphs,
        queries: Arc::new(queries),
        learning: Arc::new(Learning::new(Arc::clone(engine), Arc::clone(&stored))),
        leases: Arc::new(Leases::new(store)),
        stored,
        bounds,
        reader_decisions: settings.decisions,
    }
}

/// Loads the models on a separate thread, because it takes a while.
async fn open_registry(
    settings: &Settings,
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
) -> Result<Arc<Registry>, StartError> {
    let library = settings.onnxruntime.clone();
    let keys = settings.models_key.0.as_deref();
    let settings = RegistrySettings {
        folder: settings.models.clone(),
        keys: keys.map(ModelKeys::read).transpose()?,
        defaults: settings.default_models(),
        workers: settings.workers.get(),
        retain: settings.retain_versions,
        max_slowdown: settings.max_slowdown,
        max_load: settings.max_load_seconds,
        poll: settings.poll_seconds,
    };
    let open = move || -> Result<Registry, StartError> {
        let runtime = Runtime::load(&library)?;
        Ok(Registry::open(settings, runtime, engine, metrics)?)
    };
    Ok(Arc::new(tokio::task::spawn_blocking(open).await??))
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
