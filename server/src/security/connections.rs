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

/// Limits the connections to one listener, and performs their TLS handshakes.
pub(crate) struct ConnectionGate {
    pub(super) permits: Arc<Semaphore>,
    pub(super) tls: Option<Arc<Watched<TlsFiles>>>,
    pub(super) series: Arc<ConnectionSeries>,
}

/// A connection. It counts against the limit until it is dropped.
pub(crate) struct Connection {
    stream: Pin<Box<dyn Duplex>>,
    info: TcpConnectInfo,
    /// The HTTP/2 preface, until it has been received.
    preface: Option<ExpectedPreface>,
    /// When to close, once the write side has been shut down.
    linger: Option<Pin<Box<Sleep>>>,
    _slot: Slot,
}

trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// The rest of a client's HTTP/2 preface.
struct ExpectedPreface {
    deadline: Pin<Box<Sleep>>,
    bytes: usize,
}

/// One of the connections that a listener may have.
struct Slot {
    series: Arc<ConnectionSeries>,
    _permit: OwnedSemaphorePermit,
}

/// Time that a client has for the TLS handshake, and again for the HTTP/2 preface. A client that sends neither would
/// otherwise occupy a connection forever.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the HTTP/2 preface (RFC 9113, section 3.4). Keep-alive pings watch the client afterwards.
const PREFACE_BYTES: usize = 24;

/// Time that a client has to close the connection after the server has finished. Data that arrives at a closed socket is
/// answered by a reset, on which `HAProxy` discards the end of an answer that it has not read yet.
const LINGER: Duration = Duration::from_secs(2);

/// Delay before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Minimum time between two warnings about such errors.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Delays connections after an error, such as too many open files.
#[derive(Default)]
struct AcceptBackoff {
    retry_at: Option<Instant>,
    warned_at: Option<Instant>,
}

/// Returns the connections that a listener accepts, each after its handshake. Handshakes run concurrently.
pub(crate) fn connections(
    listener: TcpListener,
    gate: ConnectionGate,
) -> impl Stream<Item = io::Result<Connection>> + Send {
    let state = (listener, gate, JoinSet::new(), AcceptBackoff::default());
    stream::unfold(state, |(listener, gate, mut handshakes, mut backoff)| async move {
        loop {
            tokio::select! {
                accepted = backoff.accept(&listener) => match accepted {
                    Ok((stream, _)) => gate.admit(stream, &mut handshakes),
                    Err(error) => backoff.note(&error),
                },
                Some(finished) = handshakes.join_next() => if let Ok(Some(connection)) = finished {
                    return Some((Ok(connection), (listener, gate, handshakes, backoff)));
                },
            }
        }
    })
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
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return;
        }
        let now = Instant::now();
        self.retry_at = Some(now + ACCEPT_RETRY_DELAY);
        if self.warned_at.is_none_or(|warned_at| now.duration_since(warned_at) >= WARNING_INTERVAL) {
            self.warned_at = Some(now);
            tracing::warn!(%error, "cannot take connections: open ones continue, new ones wait");
        }
    }
}

impl ConnectionGate {
    /// Starts the handshake of a connection, or closes it if the limit is reached.
    fn admit(&self, stream: TcpStream, handshakes: &mut JoinSet<Option<Connection>>) {
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            self.series.over_limit.increment(1);
            return;
        };
        let slot = Slot::new(&self.series, permit);
        let acceptor = self.tls.as_ref().map(|tls| TlsAcceptor::from(Arc::clone(&tls.current().config)));
        handshakes.spawn(slot.handshake(stream, acceptor));
    }
}

impl Slot {
    fn new(series: &Arc<ConnectionSeries>, permit: OwnedSemaphorePermit) -> Self {
        series.open.increment(1);
        Self { series: Arc::clone(series), _permit: permit }
    }

    async fn handshake(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) -> Option<Connection> {
        // Small answers are sent without delay. An error means that the client has disconnected already.
        let _ = stream.set_nodelay(true);
        let info = stream.connect_info();
        let stream: Pin<Box<dyn Duplex>> = match acceptor {
            None => Box::pin(stream),
            Some(acceptor) => match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
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
        let preface =
            Some(ExpectedPreface { deadline: Box::pin(sleep(HANDSHAKE_TIMEOUT)), bytes: PREFACE_BYTES });
        Some(Connection { stream, info, preface, linger: None, _slot: self })
    }
}

impl Drop for Slot {
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
        let Some(preface) = &mut self.preface else { return read };
        if read.is_pending() {
            ready!(preface.deadline.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        preface.bytes = preface.bytes.saturating_sub(buffer.filled().len() - before);
        if preface.bytes == 0 {
            self.preface = None;
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
        let Connection { stream, linger, .. } = &mut *self;
        let deadline = if let Some(deadline) = linger {
            deadline
        } else {
            ready!(stream.as_mut().poll_shutdown(context))?;
            linger.insert(Box::pin(sleep(LINGER)))
        };
        let mut scratch = [MaybeUninit::uninit(); 1024];
        while deadline.as_mut().poll(context).is_pending() {
            let mut ignored = ReadBuf::uninit(&mut scratch);
            match ready!(stream.as_mut().poll_read(context, &mut ignored)) {
                Ok(()) if !ignored.filled().is_empty() => {}
                // The client has closed the connection, or it failed.
                _ => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
