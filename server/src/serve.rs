use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_proto::v1::{
    cost_model_service_server::CostModelServiceServer, model_admin_service_server::ModelAdminServiceServer,
    model_service_server::ModelServiceServer,
};
use tonic::transport::Server;
use tonic_health::pb::health_server::{Health, HealthServer};

use crate::{
    compute::ComputePool,
    engine::Engine,
    graphs::GraphCache,
    health::Reporting,
    listening::{HeldAddress, Layers, Listening, builder, compressed, reflecting},
    metrics::Metrics,
    monitoring::{Monitored, Monitoring, Readiness},
    registry::{Defaults, Registry, RegistryError, RegistrySettings},
    runtime::{Runtime, RuntimeError},
    security::{CredentialError, Credentials, Door},
    service::{AdmitCalls, Bounds, CostModel, ModelAdmin, Models, REASONS},
    settings::{AddressOrOff, Settings},
    telemetry::{AccessLog, ExporterBuildError, Observer, Tracing},
};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// ONNX Runtime is missing or broken.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// There are no models to serve.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The compute threads could not be started.
    #[error("cannot start the compute threads: {0}")]
    Threads(#[from] std::io::Error),
    /// Loading the models panicked.
    #[error("loading the models failed: {0}")]
    Loading(#[from] tokio::task::JoinError),
    /// Certificates or tokens cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialError),
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; choose another with {flag}")]
    Listen {
        /// What gives the address.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The reflection service does not read the descriptors that were built in.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// What sends spans does not take its settings.
    #[error("cannot send spans to --otlp-endpoint: {0}")]
    Spans(#[from] ExporterBuildError),
}

/// A server that accepts calls until it is stopped.
pub struct RunningServer {
    registry: Arc<Registry>,
    credentials: Arc<Credentials>,
    calls: Listening,
    admin: Option<Listening>,
    monitoring: Option<Monitoring>,
    readiness: Arc<Readiness>,
    health: Reporting,
    tracing: Tracing,
    drain: Duration,
}

/// Where to listen, of each listener.
struct Addresses {
    calls: HeldAddress,
    metrics: Option<HeldAddress>,
    admin: Option<HeldAddress>,
}

const COST_MODEL: &str = "hlorank.v1.CostModelService";
const MODELS: &str = "hlorank.v1.ModelService";
const MODEL_ADMIN: &str = "hlorank.v1.ModelAdminService";
const HEALTH: &str = "grpc.health.v1.Health";

/// Loads the models and starts to serve; returns once calls are accepted.
pub async fn start(settings: Settings) -> Result<RunningServer, StartError> {
    let addresses = Addresses::hold(&settings)?;
    let metrics = Arc::new(Metrics::new(&REASONS));
    tokio::spawn(Arc::clone(&metrics).keep_up());
    let credentials = Arc::new(Credentials::open(&settings.security, &metrics)?);
    tokio::spawn(Arc::clone(&credentials).keep_watch(settings.poll_seconds));
    let pool = Arc::new(ComputePool::new(settings.workers)?);
    let engine = Engine::new(Arc::clone(&pool), settings.embedding_cache_bytes, &metrics);
    let engine = engine
        .bounded(settings.max_queued_nodes, settings.max_call_bytes)
        .remembering(settings.recompute_graphs);
    let engine = Arc::new(engine);
    let registry = open_registry(&settings, Arc::clone(&engine), Arc::clone(&metrics)).await?;

    let (reporter, health) = tonic_health::server::health_reporter();
    let health_reporting = Reporting::start(&registry, reporter).await;
    let graphs = GraphCache::new(settings.graph_cache_bytes, &metrics);
    let cost_model =
        CostModel::new(Arc::clone(&registry), engine, pool, graphs, bounds(&settings), Arc::clone(&metrics));
    let readiness = Arc::new(Readiness::new(Arc::clone(&registry)));
    let monitored = Monitored {
        metrics: Arc::clone(&metrics),
        cost_model: cost_model.clone(),
        readiness: Arc::clone(&readiness),
    };
    let monitoring = addresses.metrics.map(|address| Monitoring::start(address, monitored)).transpose()?;
    let tracing = Tracing::start(settings.otlp_endpoint.0.clone(), settings.trace_sample_ratio)?;
    let access_log = AccessLog { ratio: settings.access_log_sample };
    let observer = Arc::new(Observer { metrics: Arc::clone(&metrics), access_log, tracer: tracing.tracer() });
    let admin = addresses.admin.map(|address| {
        let router = builder(&settings.security, &credentials, &observer);
        listen_for_admin(
            address,
            router,
            &registry,
            health.clone(),
            credentials.door(&metrics.security.admin),
        )
    });
    let admin = admin.transpose()?;

    let admitting = cost_model.clone();
    let cost_model = CostModelServiceServer::new(cost_model)
        .max_decoding_message_size(settings.max_message_bytes)
        .max_encoding_message_size(usize::MAX);
    let router = builder(&settings.security, &credentials, &observer)
        .add_service(AdmitCalls::new(compressed!(cost_model), admitting))
        .add_service(compressed!(ModelServiceServer::new(Models::new(Arc::clone(&registry)))))
        .add_service(compressed!(health));
    let router = reflecting(router, &[COST_MODEL, MODELS, HEALTH])?;
    let door = credentials.door(&metrics.security.calls);
    let calls = Listening::start(addresses.calls, door, router)?;
    credentials.warn(calls.address(), admin.as_ref().map(Listening::address));

    let shown = |address: Option<SocketAddr>| address.map(tracing::field::display);
    tracing::info!(
        address = %calls.address(),
        metrics = shown(monitoring.as_ref().map(Monitoring::address)),
        admin = shown(admin.as_ref().map(Listening::address)),
        "serving"
    );
    Ok(RunningServer {
        registry,
        credentials,
        calls,
        admin,
        monitoring,
        readiness,
        health: health_reporting,
        tracing,
        drain: settings.drain_seconds,
    })
}

/// Loads the models, which takes a while, on a thread of its own.
async fn open_registry(
    settings: &Settings,
    engine: Arc<Engine>,
    metrics: Arc<Metrics>,
) -> Result<Arc<Registry>, StartError> {
    let library = settings.onnxruntime.clone();
    let settings = RegistrySettings {
        folder: settings.models.clone(),
        defaults: Defaults {
            layout: settings.default_layout_model.clone(),
            tile: settings.default_tile_model.clone(),
        },
        workers: settings.workers.get(),
        retain: settings.retain_versions,
        max_slowdown: settings.max_slowdown,
        poll: settings.poll_seconds,
    };
    let opened = tokio::task::spawn_blocking(move || -> Result<Registry, StartError> {
        Ok(Registry::open(settings, Runtime::load(&library)?, engine, metrics)?)
    });
    Ok(Arc::new(opened.await??))
}

fn listen_for_admin(
    address: HeldAddress,
    mut server: Server<Layers>,
    registry: &Arc<Registry>,
    health: HealthServer<impl Health>,
    door: Door,
) -> Result<Listening, StartError> {
    let router = server
        .add_service(compressed!(ModelAdminServiceServer::new(ModelAdmin::new(Arc::clone(registry)))))
        .add_service(compressed!(ModelServiceServer::new(Models::new(Arc::clone(registry)))))
        .add_service(compressed!(health));
    let router = reflecting(router, &[MODEL_ADMIN, MODELS, HEALTH])?;
    Listening::start(address, door, router)
}

impl Addresses {
    /// Before anything is loaded: what a server that runs already has is told at once.
    fn hold(settings: &Settings) -> Result<Self, StartError> {
        let hold = |address: AddressOrOff, flag| {
            address.0.map(|address| HeldAddress::hold(address, flag)).transpose()
        };
        Ok(Self {
            calls: HeldAddress::hold(settings.listen, "--listen")?,
            metrics: hold(settings.metrics_listen, "--metrics-listen")?,
            admin: hold(settings.admin_listen, "--admin-listen")?,
        })
    }
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        limits: settings.limits.limits(),
        graph_bytes: settings.max_graph_bytes,
        requests: settings.max_requests,
        client_requests: settings.max_client_requests,
        stream_configs: settings.max_stream_configs,
    }
}

impl RunningServer {
    /// Where it listens; the port that was chosen where the settings said 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.calls.address()
    }

    /// Where it listens for admin calls; `None` where the settings turn them off.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Listening::address)
    }

    /// Where metrics are; `None` where the settings turn them off.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.monitoring.as_ref().map(Monitoring::address)
    }

    /// Has new model versions, certificates and tokens looked for at once, and rejected versions tried again; does not
    /// wait for it.
    pub fn reload(&self) {
        tokio::spawn(Arc::clone(&self.credentials).look());
        let registry = Arc::clone(&self.registry);
        tokio::spawn(async move {
            if let Err(error) = registry.reload().await {
                tracing::warn!(%error, "models were not reloaded");
            }
        });
    }

    /// Stops accepting, finishes the calls in progress, and returns; after the drain time at the latest.
    pub async fn stop(self) {
        tracing::info!("stopping");
        self.readiness.stop();
        self.registry.stop();
        self.health.stop().await;
        let admin = async {
            match self.admin {
                Some(admin) => admin.stop(self.drain).await,
                None => Ok(()),
            }
        };
        let started = Instant::now();
        let (calls, admin) = tokio::join!(self.calls.stop(self.drain), admin);
        self.tracing.stop(self.drain.saturating_sub(started.elapsed())).await;
        if calls.is_ok() && admin.is_ok() {
            tracing::info!("stopped");
        } else {
            tracing::warn!("stopped with calls in progress: the drain time was over");
        }
    }
}
