use std::sync::Arc;

use metrics::{Counter, Gauge};

use super::recorder::Recorder;

/// Metrics of connections, certificates and tokens.
pub struct SecuritySeries {
    /// Connections to the gRPC listener.
    pub calls: Arc<ConnectionSeries>,
    /// Connections to the admin listener.
    pub admin: Arc<ConnectionSeries>,
    /// Connections to the metrics listener.
    pub metrics: Arc<ConnectionSeries>,
    /// Expiry time of the certificate in use.
    pub certificate_expiry: Gauge,
    /// Reloads of certificates.
    pub certificate: ReloadSeries,
    /// Reloads of tokens.
    pub tokens: ReloadSeries,
}

/// Metrics of the connections to one listener.
pub struct ConnectionSeries {
    /// Open connections, including those in their handshake.
    pub open: Gauge,
    /// Connections that may make calls.
    pub accepted: Counter,
    /// Connections rejected at the connection limit, because all others had calls in flight.
    pub over_limit: Counter,
    /// Failed handshakes: the client did not use TLS, did not trust the server, or has no certificate that the server
    /// trusts.
    pub handshake_failed: Counter,
    /// Handshakes that timed out.
    pub handshake_timeout: Counter,
    /// Idle connections closed at the connection limit in favour of new ones.
    pub evicted: Counter,
}

/// Metrics of reloads of one kind of file.
pub struct ReloadSeries {
    /// Reloads that took effect.
    pub loaded: Counter,
    /// Reloads that were refused; the previous files stay in use.
    pub refused: Counter,
}

impl SecuritySeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        Self {
            calls: Arc::new(ConnectionSeries::new(recorder, "calls")),
            admin: Arc::new(ConnectionSeries::new(recorder, "admin")),
            metrics: Arc::new(ConnectionSeries::new(recorder, "metrics")),
            certificate_expiry: recorder.series(
                "hlorank_tls_certificate_expiry_timestamp_seconds",
                "Expiry time of the certificate in use, in seconds since the Unix epoch; 0 without TLS",
                &[],
            ),
            certificate: ReloadSeries::new(recorder, "certificate"),
            tokens: ReloadSeries::new(recorder, "tokens"),
        }
    }
}

impl ConnectionSeries {
    fn new(recorder: &Recorder, listener: &str) -> Self {
        let result = |result| {
            recorder.series(
                "hlorank_connections_total",
                "Connections by result: accepted, rejected at the connection limit, closed because the TLS handshake failed or timed out, or evicted for a new connection at the limit",
                &[("listener", listener), ("result", result)],
            )
        };
        Self {
            open: recorder.series(
                "hlorank_open_connections",
                "Connections that are open or in their TLS handshake",
                &[("listener", listener)],
            ),
            accepted: result("accepted"),
            over_limit: result("over_limit"),
            handshake_failed: result("handshake_failed"),
            handshake_timeout: result("handshake_timeout"),
            evicted: result("evicted"),
        }
    }
}

impl ReloadSeries {
    fn new(recorder: &Recorder, credential: &str) -> Self {
        let reloads = |result| {
            recorder.series(
                "hlorank_credential_reloads_total",
                "Reloads of changed certificate or token files: loaded, or refused, which keeps the previous ones in use",
                &[("credential", credential), ("result", result)],
            )
        };
        Self {
            loaded: reloads("loaded"),
            refused: reloads("refused"),
        }
    }
}
