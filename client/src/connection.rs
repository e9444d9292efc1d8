use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::ClientError;

/// How a client connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// How long to wait for the connection; 10 seconds unless set.
    pub connect_timeout: Duration,
    /// Bytes of one message in either direction; 64 MiB unless set, as much as a server takes by default.
    pub message_bytes: usize,
    /// Bytes of one call on their way before the other side has taken them (HTTP/2 windows); 8 MiB unless set,
    /// which cuts the time of messages of megabytes to a third. Of all calls together, four times as many.
    pub window_bytes: u32,
}

/// How often a server must show that it is there while it works on a call, and how long it may take to.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// What HTTP/2 allows.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// A stream whose scores are not taken leaves room for other calls of its connection.
const CALLS_WITH_FULL_WINDOWS: u32 = 4;

impl Default for Connection {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(10), message_bytes: 64 << 20, window_bytes: 8 << 20 }
    }
}

impl Connection {
    /// Opens a channel to a server such as `http://127.0.0.1:7070`.
    pub(crate) async fn open(&self, endpoint: &str) -> Result<Channel, ClientError> {
        let failed = |source| ClientError::Connect { endpoint: endpoint.to_owned(), source };
        let channel = Endpoint::from_shared(endpoint.to_owned()).map_err(failed)?;
        if channel.uri().scheme_str() != Some("http") {
            return Err(ClientError::Scheme { endpoint: endpoint.to_owned() });
        }
        let connection_window = self.window_bytes.saturating_mul(CALLS_WITH_FULL_WINDOWS).min(LARGEST_WINDOW);
        let channel = channel
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .connect_timeout(self.connect_timeout)
            .initial_stream_window_size(self.window_bytes)
            .initial_connection_window_size(connection_window);
        channel.connect().await.map_err(failed)
    }
}
