use std::{
    io,
    mem::MaybeUninit,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{Instant, Sleep, sleep, sleep_until, timeout},
};
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::{Connected, TcpConnectInfo};

use super::{certificates::TlsFiles, watched::Watched};
use crate::metrics::ConnectionSeries;

/// What connections to one listener come in through.
pub(crate) struct Door {
    pub(super) places: Arc<Semaphore>,
    pub(super) tls: Option<Arc<Watched<TlsFiles>>>,
    pub(super) series: Arc<ConnectionSeries>,
}

/// A connection that holds a place until it is dropped.
pub(crate) struct Connection {
    stream: Pin<Box<dyn Duplex>>,
    info: TcpConnectInfo,
    /// Until the client has said that it speaks HTTP/2.
    greeting: Option<Greeting>,
    /// When to hang up, once everything was said.
    farewell: Option<Pin<Box<Sleep>>>,
    _place: Place,
}

trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// How long the first bytes of a client may take, and how many are to come.
struct Greeting {
    until: Pin<Box<Sleep>>,
    bytes: usize,
}

/// One of the connections that a listener may have.
struct Place {
    series: Arc<ConnectionSeries>,
    _permit: OwnedSemaphorePermit,
}

/// For a client's part of the TLS handshake, and again for its HTTP/2 preface: one that does neither would hold a place
/// for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of the HTTP/2 preface (RFC 9113, section 3.4); keep-alive pings watch a client from there on.
const PREFACE_BYTES: usize = 24;

/// For a client to hang up, once all was said. What it sends to a socket that is closed already is answered by a reset, at
/// which `HAProxy` forgets the end of an answer that it has not read yet.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait where the process has no room for another socket.
const PAUSE: Duration = Duration::from_millis(100);

/// How often that is told.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// Connections cannot be taken at present.
#[derive(Default)]
struct Shortage {
    until: Option<Instant>,
    told: Option<Instant>,
}

/// The connections that a listener takes, each once it has shaken hands. Those that shake hands do not hold up others.
pub(crate) fn connections(
    listener: TcpListener,
    door: Door,
) -> impl Stream<Item = io::Result<Connection>> + Send {
    let state = (listener, door, JoinSet::new(), Shortage::default());
    stream::unfold(state, |(listener, door, mut entering, mut shortage)| async move {
        loop {
            tokio::select! {
                accepted = shortage.accept(&listener) => match accepted {
                    Ok((stream, _)) => door.enter(stream, &mut entering),
                    Err(error) => shortage.note(&error),
                },
                Some(entered) = entering.join_next() => if let Ok(Some(connection)) = entered {
                    return Some((Ok(connection), (listener, door, entering, shortage)));
                },
            }
        }
    })
}

impl Shortage {
    /// Takes a connection, once it is worth trying.
    async fn accept(&self, listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(until) = self.until {
            sleep_until(until).await;
        }
        listener.accept().await
    }

    /// A client that went away is no reason to wait; that there are too many files open is.
    fn note(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        let now = Instant::now();
        self.until = Some(now + PAUSE);
        if self.told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY) {
            self.told = Some(now);
            tracing::warn!(%error, "cannot take connections: those that are open go on, others wait");
        }
    }
}

impl Door {
    fn enter(&self, stream: TcpStream, entering: &mut JoinSet<Option<Connection>>) {
        let Ok(permit) = Arc::clone(&self.places).try_acquire_owned() else {
            self.series.over_limit.increment(1);
            return;
        };
        let place = Place::new(&self.series, permit);
        let acceptor = self.tls.as_ref().map(|tls| TlsAcceptor::from(Arc::clone(&tls.current().config)));
        entering.spawn(place.welcome(stream, acceptor));
    }
}

impl Place {
    fn new(series: &Arc<ConnectionSeries>, permit: OwnedSemaphorePermit) -> Self {
        series.open.increment(1);
        Self { series: Arc::clone(series), _permit: permit }
    }

    async fn welcome(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Option<Connection> {
        // Small answers do not wait for more to send; an error means that the client is gone already.
        let _ = stream.set_nodelay(true);
        let info = stream.connect_info();
        let stream: Pin<Box<dyn Duplex>> = match acceptor {
            None => Box::pin(stream),
            Some(acceptor) => match timeout(PATIENCE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => Box::pin(stream),
                Ok(Err(error)) => {
                    tracing::debug!(client = ?info.remote_addr, %error, "the TLS handshake failed");
                    self.series.handshake_failed.increment(1);
                    return None;
                }
                Err(_) => {
                    self.series.handshake_timeout.increment(1);
                    return None;
                }
            },
        };
        self.series.accepted.increment(1);
        let greeting = Some(Greeting { until: Box::pin(sleep(PATIENCE)), bytes: PREFACE_BYTES });
        Some(Connection { stream, info, greeting, farewell: None, _place: self })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.series.open.decrement(1);
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.info.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(context, buffer);
        let Some(greeting) = &mut self.greeting else { return read };
        if read.is_pending() {
            ready!(greeting.until.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        greeting.bytes = greeting.bytes.saturating_sub(buffer.filled().len() - before);
        if greeting.bytes == 0 {
            self.greeting = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.as_mut().poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.as_mut().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Connection { stream, farewell, .. } = &mut *self;
        let until = if let Some(until) = farewell {
            until
        } else {
            ready!(stream.as_mut().poll_shutdown(context))?;
            farewell.insert(Box::pin(sleep(FAREWELL)))
        };
        let mut scratch = [MaybeUninit::uninit(); 1024];
        while until.as_mut().poll(context).is_pending() {
            let mut ignored = ReadBuf::uninit(&mut scratch);
            match ready!(stream.as_mut().poll_read(context, &mut ignored)) {
                Ok(()) if !ignored.filled().is_empty() => {}
                // It hung up, one way or another.
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
