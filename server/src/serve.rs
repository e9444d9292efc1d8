use std::{net::SocketAddr, sync::Arc, time::Duration};

use hlorank_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{
        cost_model_service_server::CostModelServiceServer,
        model_admin_service_server::ModelAdminServiceServer, model_service_server::ModelServiceServer,
    },
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::error::Elapsed};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Server, server::Router};
use tower::layer::util::{Identity, Stack};

use crate::{
    compute::ComputePool,
    engine::Engine,
    graphs::GraphCache,
    health::report_health,
    registry::{Defaults, Registry, RegistryError, RegistrySettings},
    runtime::{Runtime, RuntimeError},
    service::{Bounds, CostModel, ExplainRefusalsLayer, ModelAdmin, Models},
    settings::{Listener, Settings},
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
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; choose another with {setting}")]
    Listen {
        /// What chooses it.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The reflection service does not read the descriptors that were built in.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// A server that accepts calls until it is stopped.
pub struct RunningServer {
    registry: Arc<Registry>,
    calls: Listening,
    admin: Option<Listening>,
    drain: Duration,
}

/// One address that is listened on.
struct Listening {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// HTTP/2 window of a call: large enough that a packed batch is one round trip.
const CALL_WINDOW_BYTES: u32 = 8 << 20;

/// HTTP/2 window of a connection: a stream whose client takes no scores leaves room for other calls.
const CONNECTION_WINDOW_BYTES: u32 = 4 * CALL_WINDOW_BYTES;

/// How often a client must show that it is there, and how long it may take to: one that vanished in the middle of a
/// stream would hold its place for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Loads the models and starts to serve; returns once calls are accepted.
pub async fn start(settings: Settings) -> Result<RunningServer, StartError> {
    let pool = Arc::new(ComputePool::new(settings.workers)?);
    let engine = Arc::new(Engine::new(Arc::clone(&pool), settings.embedding_cache_bytes));
    let registry = open_registry(&settings, Arc::clone(&engine)).await?;

    let (health, health_service) = tonic_health::server::health_reporter();
    report_health(&registry, health).await;
    let graphs = GraphCache::new(settings.graph_cache_bytes);
    let cost_model = CostModel::new(Arc::clone(&registry), engine, pool, graphs, bounds(&settings));
    let cost_model = CostModelServiceServer::new(cost_model)
        .max_decoding_message_size(settings.max_message_bytes)
        .max_encoding_message_size(usize::MAX);
    let services = [CALL_SERVICES, SHARED_SERVICES].concat();
    let router = builder()
        .add_service(cost_model)
        .add_service(ModelServiceServer::new(Models::new(Arc::clone(&registry))))
        .add_service(health_service.clone())
        .add_service(reflection(&services).build_v1()?)
        .add_service(reflection(&services).build_v1alpha()?);
    let calls = Listening::start(settings.listen, "--listen", router).await?;
    tracing::info!(address = %calls.address, "serving");

    let admin = match settings.admin_listen {
        Listener::Off => None,
        Listener::At(address) => {
            let services = [ADMIN_SERVICES, SHARED_SERVICES].concat();
            let router = builder()
                .add_service(ModelAdminServiceServer::new(ModelAdmin::new(Arc::clone(&registry))))
                .add_service(ModelServiceServer::new(Models::new(Arc::clone(&registry))))
                .add_service(health_service)
                .add_service(reflection(&services).build_v1()?)
                .add_service(reflection(&services).build_v1alpha()?);
            let admin = Listening::start(address, "--admin-listen", router).await?;
            tracing::info!(address = %admin.address, "admin calls");
            Some(admin)
        }
    };
    Ok(RunningServer { registry, calls, admin, drain: settings.drain_seconds })
}

/// Loads the models, which takes seconds, on a thread of its own.
async fn open_registry(settings: &Settings, engine: Arc<Engine>) -> Result<Arc<Registry>, StartError> {
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
        Ok(Registry::open(settings, Runtime::load(&library)?, engine)?)
    });
    Ok(Arc::new(opened.await??))
}

const CALL_SERVICES: &[&str] = &["hlorank.v1.CostModelService"];
const ADMIN_SERVICES: &[&str] = &["hlorank.v1.ModelAdminService"];
const SHARED_SERVICES: &[&str] = &["hlorank.v1.ModelService", "grpc.health.v1.Health"];

fn builder() -> Server<Stack<ExplainRefusalsLayer, Identity>> {
    Server::builder()
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .tcp_nodelay(true)
        .layer(ExplainRefusalsLayer)
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        limits: settings.limits.limits(),
        graph_bytes: settings.max_graph_bytes,
        requests: settings.max_requests,
        stream_configs: settings.max_stream_configs,
    }
}

/// Tells about these services.
fn reflection(services: &[&str]) -> tonic_reflection::server::Builder<'static> {
    let builder = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    services.iter().fold(builder, |builder, service| builder.with_service_name(*service))
}

impl Listening {
    /// Serves on an address that `setting` gave.
    async fn start(
        address: SocketAddr,
        setting: &'static str,
        router: Router<Stack<ExplainRefusalsLayer, Identity>>,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::Listen { address, setting, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let until_stopped = async {
            // A dropped server stops like a stopped one.
            let _ = stopped.await;
        };
        let serving = router.serve_with_incoming_shutdown(TcpListenerStream::new(listener), until_stopped);
        Ok(Self { address, stop, serving: tokio::spawn(serving) })
    }

    /// Stops accepting, and finishes the calls in progress unless that takes longer.
    async fn stop(self, drain: Duration) -> Result<(), Elapsed> {
        // An error means that it has stopped already.
        let _ = self.stop.send(());
        let mut serving = self.serving;
        let stopped = tokio::time::timeout(drain, &mut serving).await;
        serving.abort();
        stopped.map(drop)
    }
}

impl RunningServer {
    /// Where it listens; the port that was chosen where the settings said 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.calls.address
    }

    /// Where it listens for admin calls, if it does.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// Has new model versions looked for at once, and rejected ones tried again; does not wait for it.
    pub fn reload(&self) {
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
        let admin = async {
            match self.admin {
                Some(admin) => admin.stop(self.drain).await,
                None => Ok(()),
            }
        };
        let (calls, admin) = tokio::join!(self.calls.stop(self.drain), admin);
        if calls.is_ok() && admin.is_ok() {
            tracing::info!("stopped");
        } else {
            tracing::warn!("stopped with calls in progress: the drain time was over");
        }
    }
}
