//! An address that gRPC calls are taken on.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hlorank_proto::FILE_DESCRIPTOR_SET;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time::error::Elapsed};
use tonic::transport::{
    Server,
    server::{Router, TcpIncoming},
};
use tower::layer::util::{Identity, Stack};

use crate::{
    serve::StartError,
    service::ExplainRefusalsLayer,
    telemetry::{ObserveCallsLayer, Observer},
};

/// One address that is listened on, until it is stopped or dropped.
pub(crate) struct Listening {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// What every call goes through.
pub(crate) type Layers = Stack<ExplainRefusalsLayer, Stack<ObserveCallsLayer, Identity>>;

/// HTTP/2 window of a call: large enough that a packed batch is one round trip.
const CALL_WINDOW_BYTES: u32 = 8 << 20;

/// HTTP/2 window of a connection: a stream whose client takes no scores leaves room for other calls.
const CONNECTION_WINDOW_BYTES: u32 = 4 * CALL_WINDOW_BYTES;

/// How often a client must show that it is there, and how long it may take to: one that vanished in the middle of a
/// stream would hold its place for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A server without services yet.
pub(crate) fn builder(observer: &Arc<Observer>) -> Server<Layers> {
    Server::builder()
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .layer(ObserveCallsLayer(Arc::clone(observer)))
        .layer(ExplainRefusalsLayer)
}

/// Adds reflection, which tells about these services.
pub(crate) fn reflecting(router: Router<Layers>, services: &[&str]) -> Result<Router<Layers>, StartError> {
    // It tells about itself, too.
    let reflection = |own: &'static str| {
        let builder = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .with_service_name(own);
        services.iter().fold(builder, |builder, service| builder.with_service_name(*service))
    };
    let v1 = reflection("grpc.reflection.v1.ServerReflection").build_v1()?;
    let v1alpha = reflection("grpc.reflection.v1alpha.ServerReflection").build_v1alpha()?;
    Ok(router.add_service(v1).add_service(v1alpha))
}

/// Binds the address that a flag gave.
pub(crate) async fn bind(
    address: SocketAddr,
    flag: &'static str,
) -> Result<(SocketAddr, TcpListener), StartError> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    listener.map_err(|source| StartError::Listen { flag, address, source })
}

impl Listening {
    /// Takes calls on the address that a flag gave.
    pub(crate) async fn start(
        address: SocketAddr,
        flag: &'static str,
        router: Router<Layers>,
    ) -> Result<Self, StartError> {
        let (address, listener) = bind(address, flag).await?;
        let (stop, stopped) = oneshot::channel();
        let until_stopped = async {
            // A dropped server stops like a stopped one.
            let _ = stopped.await;
        };
        // An answer of several packets would wait for the client to acknowledge the first of them.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = router.serve_with_incoming_shutdown(incoming, until_stopped);
        Ok(Self { address, stop, serving: tokio::spawn(serving) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, and finishes the calls in progress unless that takes longer.
    pub(crate) async fn stop(self, drain: Duration) -> Result<(), Elapsed> {
        // An error means that it has stopped already.
        let _ = self.stop.send(());
        let mut serving = self.serving;
        let stopped = tokio::time::timeout(drain, &mut serving).await;
        serving.abort();
        stopped.map(drop)
    }
}
