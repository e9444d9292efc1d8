use std::{net::SocketAddr, sync::Arc, time::Duration};

use hlorank_proto::{
    FILE_DESCRIPTOR_SET,
    v1::{cost_model_service_server::CostModelServiceServer, model_service_server::ModelServiceServer},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;

use crate::{
    compute::ComputePool,
    registry::{Defaults, Registry, RegistryError},
    runtime::{Runtime, RuntimeError},
    service::{Bounds, CacheBytes, CostModel, ExplainRefusalsLayer, Models},
    settings::Settings,
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
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}; choose another with --listen")]
    Listen {
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
    address: SocketAddr,
    drain: Duration,
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
    let (registry, pool) = load(&settings)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .map_err(|source| StartError::Listen { address: settings.listen, source });
    let (address, listener) = listener?;

    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_serving::<CostModelServiceServer<CostModel>>().await;
    health.set_serving::<ModelServiceServer<Models>>().await;
    let cache = CacheBytes { graphs: settings.graph_cache_bytes, embeddings: settings.embedding_cache_bytes };
    let cost_model = CostModel::new(Arc::clone(&registry), pool, cache, bounds(&settings));
    let cost_model = CostModelServiceServer::new(cost_model)
        .max_decoding_message_size(settings.max_message_bytes)
        .max_encoding_message_size(usize::MAX);
    let router = Server::builder()
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .tcp_nodelay(true)
        .layer(ExplainRefusalsLayer)
        .add_service(cost_model)
        .add_service(ModelServiceServer::new(Models::new(registry)))
        .add_service(health_service)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);

    let (stop, stopped) = oneshot::channel();
    let until_stopped = async {
        // A dropped server stops like a stopped one.
        let _ = stopped.await;
    };
    let serving = router.serve_with_incoming_shutdown(TcpListenerStream::new(listener), until_stopped);
    tracing::info!(%address, "serving");
    Ok(RunningServer { address, drain: settings.drain_seconds, stop, serving: tokio::spawn(serving) })
}

fn load(settings: &Settings) -> Result<(Arc<Registry>, Arc<ComputePool>), StartError> {
    let runtime = Runtime::load(&settings.onnxruntime)?;
    let defaults =
        Defaults { layout: settings.default_layout_model.clone(), tile: settings.default_tile_model.clone() };
    let registry = Registry::load(&settings.models, defaults, &runtime, settings.workers.get())?;
    Ok((Arc::new(registry), Arc::new(ComputePool::new(settings.workers)?)))
}

fn bounds(settings: &Settings) -> Bounds {
    Bounds {
        limits: settings.limits.limits(),
        graph_bytes: settings.max_graph_bytes,
        requests: settings.max_requests,
        stream_configs: settings.max_stream_configs,
    }
}

fn reflection() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

impl RunningServer {
    /// Where it listens; the port that was chosen where the settings said 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, finishes the calls in progress, and returns; after the drain time at the latest.
    pub async fn stop(self) {
        tracing::info!("stopping");
        // An error means that it has stopped already.
        let _ = self.stop.send(());
        let mut serving = self.serving;
        if tokio::time::timeout(self.drain, &mut serving).await.is_ok() {
            tracing::info!("stopped");
        } else {
            serving.abort();
            tracing::warn!("stopped with calls in progress: the drain time was over");
        }
    }
}
