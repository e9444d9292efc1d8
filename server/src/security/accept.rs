//! Accepts connections, with a delay after an error that concerns the server.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep_until},
};

/// Delay before connections are accepted again after an error.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Minimum time between two warnings about such errors.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Delays connections after an error, such as too many open files.
#[derive(Default)]
pub(crate) struct AcceptBackoff {
    retry_at: Option<Instant>,
    warned_at: Option<Instant>,
}

impl AcceptBackoff {
    /// Accepts a connection, after the delay if there is one.
    pub(crate) async fn accept(
        &self,
        listener: &TcpListener,
    ) -> io::Result<(TcpStream, SocketAddr)> {
        if let Some(retry_at) = self.retry_at {
            sleep_until(retry_at).await;
        }
        listener.accept().await
    }

    /// Starts the delay, unless the error concerns only one client that disconnected.
    pub(crate) fn note(&mut self, error: &io::Error) {
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
