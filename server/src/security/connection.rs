//! One connection after its TLS handshake. It ends if the HTTP/2 preface does not arrive in time, and closes without
//! losing the end of an answer.

use std::{
    io,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tonic::transport::server::TcpConnectInfo;

/// The bytes of a connection.
pub(crate) struct Connection {
    stream: Pin<Box<dyn Duplex>>,
    /// Addresses of the connection.
    pub(crate) info: TcpConnectInfo,
    /// The first bytes of the client, until they have been received.
    preface: Option<ExpectedPreface>,
    /// Bytes that were read since the connection gave way to other tasks.
    read: usize,
    /// When to close, once the write side has been shut down.
    linger: Option<Pin<Box<Sleep>>>,
}

/// A stream of bytes in both directions.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// The rest of a client's HTTP/2 preface.
struct ExpectedPreface {
    deadline: Pin<Box<Sleep>>,
    bytes: usize,
}

/// Time that a client has for the TLS handshake, and again for the HTTP/2 preface. A client that sends neither would
/// otherwise occupy a connection for a long time.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Size of the HTTP/2 preface (RFC 9113, section 3.4). Keep-alive pings watch the client afterwards.
const PREFACE_BYTES: usize = 24;

/// Bytes that are read before the tasks of the calls have their turn. They would otherwise find thousands of small frames, for
/// which the transport closes the connection.
const TURN_BYTES: usize = 32 << 10;

/// Time that a client has to close the connection after the server has finished. Data that arrives at a closed socket is
/// answered by a reset, on which `HAProxy` discards the end of an answer that it has not read yet.
const LINGER: Duration = Duration::from_secs(2);

impl Connection {
    /// Returns a connection over a stream, which encrypts `info`'s connection or is it.
    pub(super) fn new(stream: Pin<Box<dyn Duplex>>, info: TcpConnectInfo) -> Self {
        let deadline = Box::pin(sleep(HANDSHAKE_TIMEOUT));
        let preface = Some(ExpectedPreface {
            deadline,
            bytes: PREFACE_BYTES,
        });
        Self {
            stream,
            info,
            preface,
            read: 0,
            linger: None,
        }
    }

    /// Fails when the client has not sent the preface in time.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(preface) = &mut self.preface else {
            return Poll::Pending;
        };
        ready!(preface.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Counts bytes of the client.
    fn received(&mut self, bytes: usize) {
        self.read += bytes;
        if let Some(preface) = &mut self.preface {
            preface.bytes = preface.bytes.saturating_sub(bytes);
            if preface.bytes == 0 {
                self.preface = None;
            }
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN_BYTES {
            self.read = 0;
            // More may be there already, so the task must be polled again without an event of the
            // socket.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = self.stream.as_mut().poll_read(context, buffer);
        if read.is_pending() {
            // Other tasks have their turn while nothing can be read.
            self.read = 0;
            return self.poll_deadline(context);
        }
        self.received(buffer.filled().len() - before);
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
        // What the client still sends is read and dropped, so that the socket is closed without
        // data in it.
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
