//! One attacker: it connects from an address of its own, plainly or as an HTTP/2 client that is free to misbehave.

use std::{
    error::Error,
    io,
    net::{Ipv4Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use h2::{
    SendStream,
    client::{Builder, Connection, ResponseFuture, SendRequest},
};
use http::Request;
use prost::bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpSocket, TcpStream},
};
use tonic::Status;

use super::sent::Sent;

/// Why an attacker could not go on, such as a closed connection.
pub type Broken = Box<dyn Error + Send + Sync>;

/// HTTP/2 window of answers: the default of the protocol.
pub const WINDOW_BYTES: u32 = 65_535;

/// Bytes of a message that may wait for the server's window.
const SEND_BUFFER_BYTES: usize = 64 << 20;

/// One attacker.
#[derive(Clone, Debug)]
pub struct Attacker {
    target: SocketAddr,
    from: Ipv4Addr,
    sent: Arc<Sent>,
}

/// Connection that counts the bytes written to it.
#[derive(Debug)]
pub struct CountedStream {
    stream: TcpStream,
    sent: Arc<Sent>,
}

/// HTTP/2 client on one connection. Unlike tonic's, it may leave messages unfinished and answers unread.
#[derive(Clone)]
pub struct Client {
    requests: SendRequest<Bytes>,
    target: SocketAddr,
    sent: Arc<Sent>,
}

impl Attacker {
    pub(super) fn new(target: SocketAddr, from: Ipv4Addr, sent: Arc<Sent>) -> Self {
        Self { target, from, sent }
    }

    /// Returns an attacker outside an [`Attack`](super::Attack), for single calls.
    pub fn alone(target: SocketAddr) -> Self {
        Self::new(target, Ipv4Addr::LOCALHOST, Arc::default())
    }

    /// Opens a connection from the address of this attacker.
    ///
    /// # Errors
    /// If the server refuses the connection.
    pub async fn connect(&self) -> Result<CountedStream, Broken> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.from, 0).into())?;
        let stream = socket.connect(self.target).await?;
        stream.set_nodelay(true)?;
        self.sent.count_connection();
        Ok(CountedStream {
            stream,
            sent: Arc::clone(&self.sent),
        })
    }

    /// Opens an HTTP/2 connection on which each answer may have this number of bytes in flight.
    ///
    /// # Errors
    /// If the server refuses the connection.
    pub async fn client(&self, window_bytes: u32) -> Result<Client, Broken> {
        let (client, connection) = self.handshake(window_bytes).await?;
        // It ends when the last handle is dropped.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Like [`client`](Self::client), and returns the connection, which the caller has to drive.
    pub(super) async fn handshake(
        &self,
        window_bytes: u32,
    ) -> Result<(Client, Connection<CountedStream, Bytes>), Broken> {
        let mut builder = Builder::new();
        builder
            .initial_window_size(window_bytes)
            .max_send_buffer_size(SEND_BUFFER_BYTES);
        let (requests, connection) = builder.handshake(self.connect().await?).await?;
        Ok((
            Client {
                requests,
                target: self.target,
                sent: Arc::clone(&self.sent),
            },
            connection,
        ))
    }
}

impl Client {
    /// Begins a call: sends its headers, and waits only for the number of calls that the server allows per connection.
    ///
    /// # Errors
    /// If the connection is closed.
    pub async fn begin(
        &mut self,
        path: &str,
        encoding: &str,
    ) -> Result<(ResponseFuture, SendStream<Bytes>), Broken> {
        let request = Request::post(format!("http://{}{path}", self.target))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-encoding", encoding)
            .body(())?;
        let mut requests = self.requests.clone().ready().await?;
        self.sent.count_call();
        Ok(requests.send_request(request, false)?)
    }

    /// Makes a unary call with a framed message, and returns its status.
    ///
    /// # Errors
    /// If the call has no status because the connection is closed or the call reset.
    pub async fn call(
        &mut self,
        path: &str,
        encoding: &str,
        message: Bytes,
    ) -> Result<Status, Broken> {
        let (response, mut body) = self.begin(path, encoding).await?;
        body.send_data(message, true)?;
        status(response).await
    }
}

/// Reads an answer to its end, and returns its status.
///
/// # Errors
/// If there is no status because the connection is closed or the call reset.
pub(super) async fn status(response: ResponseFuture) -> Result<Status, Broken> {
    let response = response.await?;
    if let Some(status) = Status::from_header_map(response.headers()) {
        return Ok(status);
    }
    let mut body = response.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    Status::from_header_map(&trailers).ok_or_else(|| "an answer without a status".into())
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.sent.count_bytes(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
