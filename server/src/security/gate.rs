use std::{io, net::IpAddr, pin::Pin, sync::Arc};

use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsAcceptor;
use tonic::transport::server::Connected as _;

use super::{
    certificates::TlsFiles,
    connection::{Connection, Duplex, HANDSHAKE_TIMEOUT},
    slots::{Slot, Slots},
    watched::WatchedFiles,
};
use crate::metrics::ConnectionSeries;

/// Limits the connections to one listener, and performs their TLS handshakes. Clones share the limit.
#[derive(Clone)]
pub(crate) struct ConnectionGate {
    slots: Arc<Slots>,
    tls: Option<Arc<WatchedFiles<TlsFiles>>>,
    series: Arc<ConnectionSeries>,
}

impl ConnectionGate {
    /// Returns a gate for this number of unencrypted connections.
    pub(crate) fn new(max_connections: usize, series: &Arc<ConnectionSeries>) -> Self {
        Self::with_tls(max_connections, None, series)
    }

    /// Returns a gate that encrypts the connections if there is a certificate.
    pub(super) fn with_tls(
        max_connections: usize,
        tls: Option<Arc<WatchedFiles<TlsFiles>>>,
        series: &Arc<ConnectionSeries>,
    ) -> Self {
        Self {
            slots: Slots::new(max_connections, series),
            tls,
            series: Arc::clone(series),
        }
    }

    /// Returns a slot for a connection from an address; `None` if the connection is to be closed.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Slot> {
        self.slots.take(address)
    }

    /// Returns the connection after the TLS handshake; `None` if that failed.
    pub(crate) async fn handshake(&self, stream: TcpStream) -> Option<Connection> {
        // Small answers are sent without delay. An error means that the client has disconnected already.
        let _ = stream.set_nodelay(true);
        let info = stream.connect_info();
        let stream: Pin<Box<dyn Duplex>> = match &self.tls {
            None => Box::pin(stream),
            Some(tls) => {
                // Made for each connection, so that a new certificate is used from the next one on.
                let acceptor = TlsAcceptor::from(Arc::clone(&tls.current().config));
                let Ok(accepted) = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
                    self.series.handshake_timeout.increment(1);
                    return None;
                };
                let failed = |error: &io::Error| {
                    // Port scans fail here, so the log has them only if somebody looks for them.
                    tracing::debug!(client = ?info.remote_addr, %error, "the TLS handshake failed");
                    self.series.handshake_failed.increment(1);
                };
                Box::pin(accepted.inspect_err(failed).ok()?)
            }
        };
        self.series.accepted.increment(1);
        Some(Connection::new(stream, info))
    }
}
