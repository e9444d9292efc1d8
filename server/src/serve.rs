use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    admission::Admission,
    call::{Bounds, Decoder},
    compute::ComputePool,
    engine::{CacheBytes, Engine},
    graphs::{GraphCache, Graphs},
    health::HealthReporting,
    learning::Learning,
    listening::{Addresses, Listening},
    metrics::Metrics,
    model::ModelKeys,
    monitoring::{Monitored, Monitoring, Readiness},
    quality::{LiveQuality, Replays, RunningReplays},
    registry::{Registry, RegistrySettings},
    routers::Routers,
    runtime::Runtime,
    security::Credentials,
    service::{CostModel, REASONS},
    session::{ModelSelection, Sessions},
    settings::Settings,
    start_error::StartError,
    store::{MeasurementStore, StoreLocation},
    stored_measurements::StoredMeasurements,
    telemetry::{AccessLog, Observer, Tracing},
};

/// A server that serves calls until it is stopped.
pub struct RunningServer {
    registry: Arc<Registry>,
    credentials: Arc<Credentials>,
    calls: Listening,
    admin: Option<Listening>,
    monitoring: Option<Monitoring>,
    readiness: Arc<Readiness>,
    health: HealthReporting,
    tracing: Tracing,
    store: Option<Arc<MeasurementStore>>,
    replays: Option<RunningReplays>,
    drain: Duration,
}

/// The cache of segment tensors may have this fraction of the size of the graph cache, in addition to it.
const SEGMENTS_SHARE: u64 = 8;

/// Maximum time to close the file of measurements. A file that was not closed is repaired when it is opened.
const MAX_CLOSE: Duration = Duration::from_secs(5);

/// Loads the models and starts to serve. Returns when calls are accepted.
pub async fn start(settings: Settings) -> Result<RunningServer, StartError> {
    let addresses = Addresses::bind(&settings)?;
    let metrics = Arc::new(Metrics::new(&REASONS));
    tokio::spawn(Arc::clone(&metrics).keep_up());
    let credentials = Arc::new(Credentials::open(&settings.security, &metrics)?);
    tokio::spawn(Arc::clone(&credentials).poll(settings.poll_seconds));
    let parts = Parts::open(&settings, metrics).await?;
    let (reporter, health_service) = tonic_health::server::health_reporter();
    let health = HealthReporting::start(&parts.registry, reporter).await;
    let readiness = Arc::new(Readiness::new(Arc::clone(&parts.registry)));
    let cost_model = parts.cost_model(&settings);
    let quality = parts.quality(&cost_model);
    let replays = start_replays(&settings, parts.store.clone(), &quality);
    let tracing = Tracing::start(&settings.traces)?;
    let routers = Routers {
        settings: &settings.security,
        delivery: settings.delivery,
        cost_model: &cost_model,
        pool: parts.engine.pool(),
        credentials: &credentials,
        observer: observer(&settings, &parts.metrics, &tracing),
        registry: &parts.registry,
        quality: &quality,
        health: health_service,
    };
    let security = &parts.metrics.security;
    let admin = |address| {
        let gate = credentials.gate(&security.admin);
        Listening::start(address, gate, routers.http(), routers.admin()?)
    };
    let admin = addresses.admin.map(admin).transpose()?;
    // Calls come after everything that answers them, and before what says that the server is ready for them.
    let gate = credentials.gate(&security.calls);
    let calls = Listening::start(addresses.calls, gate, routers.http(), routers.calls()?)?;
    let hosts = settings.security.allowed_hosts.clone();
    let monitored = Monitored::new(&parts.metrics, &parts.engine, &cost_model, &readiness);
    let monitor = |address| Monitoring::start(address, monitored, hosts);
    let monitoring = addresses.metrics.map(monitor).transpose()?;
    let server = RunningServer {
        registry: parts.registry,
        credentials,
        calls,
        admin,
        monitoring,
        readiness,
        health,
        tracing,
        store: parts.store,
        replays,
        drain: settings.drain_seconds,
    };
    server.log_addresses();
    Ok(server)
}

/// Starts to replay stored measurements, if there are some and replays may take time.
fn start_replays(
    settings: &Settings,
    store: Option<Arc<MeasurementStore>>,
    quality: &Arc<LiveQuality>,
) -> Option<RunningReplays> {
    let share = settings.replay_share;
    let replays = Replays {
        quality: Arc::clone(quality),
        store: store.filter(|_| share > 0.0)?,
        share,
    };
    Some(replays.start())
}

/// What answers calls.
struct Parts {
    registry: Arc<Registry>,
    engine: Arc<Engine>,
    store: Option<Arc<MeasurementStore>>,
    metrics: Arc<Metrics>,
}

impl Parts {
    /// Opens the store of measurements, and loads the models.
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
        let pool = || Arc::clone(self.engine.pool());
        let bounds = bounds(settings);
        let limits = bounds.limits;
        let cache = GraphCache::new(settings.graph_cache_bytes, &self.metrics);
        let graphs = Arc::new(Graphs::new(cache, pool(), bounds, metrics()));
        let store = self.store.clone();
        let stored = StoredMeasurements::new(store, engine(), Arc::clone(&graphs), limits);
        let stored = Arc::new(stored);
        let max_requests = settings.max_requests;
        let admission = Admission::new(engine(), max_requests, settings.max_client_requests);
        CostModel {
            admission: Arc::new(admission),
            decoder: Decoder::new(pool(), limits),
            models: Arc::new(ModelSelection::new(Arc::clone(&self.registry), metrics())),
            graphs,
            sessions: Arc::new(Sessions::new(engine(), limits, metrics())),
            learning: Arc::new(Learning::new(engine(), Arc::clone(&stored))),
            stored,
            bounds,
        }
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
    Bounds {
        limits: settings.limits.limits(),
        graph_bytes: settings.max_graph_bytes,
        stream_configs: settings.max_stream_configs,
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

fn observer(settings: &Settings, metrics: &Arc<Metrics>, tracing: &Tracing) -> Arc<Observer> {
    let access_log = AccessLog {
        ratio: settings.access_log_sample,
    };
    Arc::new(Observer {
        metrics: Arc::clone(metrics),
        access_log,
        tracer: tracing.tracer(),
    })
}

impl RunningServer {
    /// Returns the address of the gRPC listener, with the port that was chosen if the settings say 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.calls.address()
    }

    /// Returns the address of the admin listener; `None` if it is disabled.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Listening::address)
    }

    /// Returns the address of the metrics listener; `None` if it is disabled.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.monitoring.as_ref().map(Monitoring::address)
    }

    fn log_addresses(&self) {
        self.credentials.warn(self.address(), self.admin_address());
        let shown = |address: Option<SocketAddr>| address.map(tracing::field::display);
        tracing::info!(
            address = %self.address(),
            metrics = shown(self.metrics_address()),
            admin = shown(self.admin_address()),
            "serving"
        );
    }

    /// Starts to look for new model versions, certificates and tokens, and to try rejected versions again. Does not wait
    /// for the result.
    pub fn reload(&self) {
        tokio::spawn(Arc::clone(&self.credentials).reload());
        let registry = Arc::clone(&self.registry);
        tokio::spawn(async move {
            if let Err(error) = registry.reload().await {
                tracing::warn!(%error, "models were not reloaded");
            }
        });
    }

    /// Stops accepting calls, and waits for the calls in flight, at most for the drain time.
    pub async fn stop(self) {
        tracing::info!("stopping");
        // Load balancers hear that the server stops before it refuses calls.
        self.readiness.stop();
        self.registry.stop();
        self.health.stop().await;
        drop(self.replays);
        let admin = async {
            match self.admin {
                Some(admin) => admin.stop(self.drain).await,
                None => Ok(()),
            }
        };
        let started = Instant::now();
        let (calls, admin) = tokio::join!(self.calls.stop(self.drain), admin);
        if let Some(store) = self.store
            && timeout(MAX_CLOSE, store.close()).await.is_err()
        {
            tracing::warn!("the file of measurements was not closed: the disk does not answer");
        }
        let left = self.drain.saturating_sub(started.elapsed());
        self.tracing.stop(left).await;
        if calls.is_ok() && admin.is_ok() {
            tracing::info!("stopped");
        } else {
            tracing::warn!("stopped with calls in flight: the drain time was over");
        }
    }
}
