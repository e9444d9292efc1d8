//! Listeners, and their addresses.

use std::{io, net::SocketAddr, time::Duration};

use axum::Router;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{Instant, error::Elapsed, sleep_until},
};

use crate::{
    or_off::OrOff,
    security::ConnectionGate,
    serve_connection::{Http, ServeConnection},
    settings::{Address, Settings},
    start_error::StartError,
};

/// A listener, until it is stopped or dropped.
pub(crate) struct ListenerHandle {
    address: SocketAddr,
    stop: watch::Sender<()>,
    serving: JoinHandle<()>,
}

/// A bound address, which rejects connections until the server listens on it.
pub(crate) struct BoundAddress {
    flag: &'static str,
    address: SocketAddr,
    socket: TcpSocket,
}

/// The bound addresses of all listeners.
pub(crate) struct Addresses {
    pub(crate) calls: BoundAddress,
    pub(crate) metrics: Option<BoundAddress>,
    pub(crate) admin: Option<BoundAddress>,
}

/// Delays connections after an error, such as too many open files.
#[derive(Default)]
struct AcceptBackoff {
    retry_at: Option<Instant>,
    warned_at: Option<Instant>,
}

/// Maximum number of connections that wait to be accepted.
const CONNECTION_BACKLOG: u32 = 1024;

/// Delay before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Minimum time between two warnings about such errors.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

impl Addresses {
    /// Binds the addresses. This comes before models are loaded, so that an address in use is reported immediately.
    pub(crate) fn bind(settings: &Settings) -> Result<Self, StartError> {
        let bind = |OrOff(address): &OrOff<Address>, flag| {
            let bound = address.map(|Address(address)| BoundAddress::bind(address, flag));
            bound.transpose()
        };
        Ok(Self {
            calls: BoundAddress::bind(settings.listen.0, "--listen")?,
            metrics: bind(&settings.metrics_listen, "--metrics-listen")?,
            admin: bind(&settings.admin_listen, "--admin-listen")?,
        })
    }
}

impl BoundAddress {
    /// Binds the address that a flag sets.
    fn bind(address: SocketAddr, flag: &'static str) -> Result<Self, StartError> {
        let bind = || -> io::Result<Self> {
            let socket = if address.is_ipv4() {
                TcpSocket::new_v4()
            } else {
                TcpSocket::new_v6()
            }?;
            // A given port can be bound although connections of a previous server linger there, if that server set this
            // option, too. A free port is chosen without the option, or two servers could be given the same.
            socket.set_reuseaddr(address.port() != 0)?;
            socket.bind(address)?;
            Ok(Self {
                flag,
                address: socket.local_addr()?,
                socket,
            })
        };
        bind().map_err(|source| StartError::Listen {
            flag,
            address,
            source,
        })
    }
}

impl ListenerHandle {
    /// Serves connections to an address.
    pub(crate) fn start(
        address: BoundAddress,
        gate: ConnectionGate,
        http: Http,
        router: Router,
    ) -> Result<Self, StartError> {
        let BoundAddress {
            flag,
            address,
            socket,
        } = address;
        // The next server can then bind a port that was chosen. Earlier, somebody else could have been given the port until this
        // server listens on it.
        let listen = socket
            .set_reuseaddr(true)
            .and_then(|()| socket.listen(CONNECTION_BACKLOG));
        let listener = listen.map_err(|source| StartError::Listen {
            flag,
            address,
            source,
        })?;
        let (stop, stopping) = watch::channel(());
        let connection = ServeConnection {
            gate,
            http,
            router,
            stopping,
        };
        Ok(Self {
            address,
            stop,
            serving: tokio::spawn(serve(listener, connection)),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting connections, and waits at most `drain` for the calls in flight.
    pub(crate) async fn stop(self, drain: Duration) -> Result<(), Elapsed> {
        // Dropping the sender is the signal.
        drop(self.stop);
        let mut serving = self.serving;
        let stopped = tokio::time::timeout(drain, &mut serving).await;
        // Aborting the task drops the set of connections, which closes those that are left.
        serving.abort();
        stopped.map(drop)
    }
}

impl AcceptBackoff {
    /// Accepts a connection, after the delay if there is one.
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(retry_at) = self.retry_at {
            sleep_until(retry_at).await;
        }
        listener.accept().await
    }

    /// Starts the delay, unless the error concerns only one client that disconnected.
    fn note(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(
            error.kind(),
            ConnectionAborted | ConnectionReset | Interrupted
        ) {
            return;
        }
        let now = Instant::now();
        // Too many open files stay too many for a while, and the next attempt would fail at once:
        // without a delay the loop would take a whole processor.
        self.retry_at = Some(now + ACCEPT_RETRY_DELAY);
        if self
            .warned_at
            .is_none_or(|warned_at| now.duration_since(warned_at) >= WARNING_INTERVAL)
        {
            self.warned_at = Some(now);
            tracing::warn!(%error, "cannot take connections: open ones continue, new ones wait");
        }
    }
}

/// Serves connections until the server stops, and then those that are open until they end.
async fn serve(listener: TcpListener, mut connection: ServeConnection) {
    let mut open = JoinSet::new();
    let mut backoff = AcceptBackoff::default();
    loop {
        tokio::select! {
            _ = connection.stopping.changed() => break,
            accepted = backoff.accept(&listener) => match accepted {
                Ok((stream, client)) => {
                    if let Some(slot) = connection.gate.admit(client.ip()) {
                        open.spawn(connection.clone().serve(stream, slot));
                    }
                    // Connections may come faster than the branch below has its turn, and each that has ended keeps 4 KB.
                    while open.try_join_next().is_some() {}
                }
                Err(error) => backoff.note(&error),
            },
            Some(_) = open.join_next() => {}
        }
    }
    // New connections are refused from here on, instead of waiting in the backlog.
    drop(listener);
    while open.join_next().await.is_some() {}
}
