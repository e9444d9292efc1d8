//! An address that gRPC calls are taken on.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hlorank_proto::FILE_DESCRIPTOR_SET;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::oneshot,
    task::JoinHandle,
    time::error::Elapsed,
};
use tonic::{
    body::Body,
    codec::CompressionEncoding,
    transport::{Server, server::Router},
};
use tower::{
    layer::util::{Identity, Stack},
    util::MapRequestLayer,
};

use crate::{
    security::{AuthorizeLayer, Credentials, Door, SecuritySettings, connections},
    serve::StartError,
    service::{DeadlinesLayer, ExplainRefusalsLayer, answer_as_asked},
    telemetry::{ObserveCallsLayer, Observer},
};

/// One address that is listened on, until it is stopped or dropped.
pub(crate) struct Listening {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), tonic::transport::Error>>,
}

/// What every call goes through.
pub(crate) type Layers = Stack<
    MapRequestLayer<fn(Request) -> Request>,
    Stack<
        AuthorizeLayer,
        Stack<ExplainRefusalsLayer, Stack<DeadlinesLayer, Stack<ObserveCallsLayer, Identity>>>,
    >,
>;

type Request = http::Request<Body>;

/// How messages may be compressed.
pub(crate) const ENCODINGS: [CompressionEncoding; 2] = [CompressionEncoding::Gzip, CompressionEncoding::Zstd];

/// A generated service that takes compressed messages and answers with them; such services have no trait in common.
macro_rules! compressed {
    ($service:expr) => {
        $crate::listening::ENCODINGS
            .into_iter()
            .fold($service, |service, encoding| service.accept_compressed(encoding).send_compressed(encoding))
    };
}
pub(crate) use compressed;

/// HTTP/2 window of a call: large enough that a packed batch is one round trip.
const CALL_WINDOW_BYTES: u32 = 8 << 20;

/// HTTP/2 window of a connection: a stream whose client takes no scores leaves room for other calls.
const CONNECTION_WINDOW_BYTES: u32 = 4 * CALL_WINDOW_BYTES;

/// How often a client must show that it is there, and how long it may take to: one that vanished in the middle of a
/// stream would hold its place for ever.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// A server without services yet.
pub(crate) fn builder(
    settings: &SecuritySettings,
    credentials: &Credentials,
    observer: &Arc<Observer>,
) -> Server<Layers> {
    Server::builder()
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .initial_stream_window_size(CALL_WINDOW_BYTES)
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .max_concurrent_streams(settings.max_connection_calls)
        .http2_max_header_list_size(settings.max_header_bytes)
        .layer(ObserveCallsLayer(Arc::clone(observer)))
        .layer(DeadlinesLayer)
        .layer(ExplainRefusalsLayer)
        .layer(credentials.authorize())
        .layer(MapRequestLayer::new(answer_as_asked::<Body> as fn(Request) -> Request))
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
    Ok(router.add_service(compressed!(v1)).add_service(compressed!(v1alpha)))
}

/// An address that is held, and refuses connections until it is listened on.
pub(crate) struct HeldAddress {
    flag: &'static str,
    address: SocketAddr,
    socket: TcpSocket,
}

/// Connections that may wait until they are taken.
const WAITING_CONNECTIONS: u32 = 1024;

impl HeldAddress {
    /// Holds the address that a flag gave.
    pub(crate) fn hold(address: SocketAddr, flag: &'static str) -> Result<Self, StartError> {
        let hold = || -> io::Result<Self> {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // A given port is taken although connections of a server before this one linger there, if that one allowed
            // it; a free one is looked for without, or two servers may find the same.
            socket.set_reuseaddr(address.port() != 0)?;
            socket.bind(address)?;
            socket.set_reuseaddr(true)?;
            Ok(Self { flag, address: socket.local_addr()?, socket })
        };
        hold().map_err(|source| StartError::Listen { flag, address, source })
    }

    /// Has clients connect from now on.
    pub(crate) fn listen(self) -> Result<(SocketAddr, TcpListener), StartError> {
        let Self { flag, address, socket } = self;
        match socket.listen(WAITING_CONNECTIONS) {
            Ok(listener) => Ok((address, listener)),
            Err(source) => Err(StartError::Listen { flag, address, source }),
        }
    }
}

impl Listening {
    /// Takes calls on an address.
    pub(crate) fn start(
        address: HeldAddress,
        door: Door,
        router: Router<Layers>,
    ) -> Result<Self, StartError> {
        let (address, listener) = address.listen()?;
        let (stop, stopped) = oneshot::channel();
        let until_stopped = async {
            // A dropped server stops like a stopped one.
            let _ = stopped.await;
        };
        let serving = router.serve_with_incoming_shutdown(connections(listener, door), until_stopped);
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
