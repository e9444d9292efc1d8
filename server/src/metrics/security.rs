use std::sync::Arc;

use metrics::{Counter, Gauge};

use super::recorder::{Recorder, series};

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

series! {
    /// Metrics of the connections to one listener.
    pub struct ConnectionSeries {
        /// Connections that are open or in their TLS handshake
        pub open: Gauge = "hlorank_open_connections",
    }
    Counter "hlorank_connections_total" by result: "Connections by result: accepted, rejected at the connection limit, closed because the TLS handshake failed or timed out, or evicted for a new connection at the limit" {
        /// Connections that may make calls.
        pub accepted = "accepted",
        /// Connections rejected at the connection limit, because all others had calls in flight.
        pub over_limit = "over_limit",
        /// Failed handshakes: the client did not use TLS, did not trust the server, or has no certificate that the server
        /// trusts.
        pub handshake_failed = "handshake_failed",
        /// Handshakes that timed out.
        pub handshake_timeout = "handshake_timeout",
        /// Idle connections closed at the connection limit in favour of new ones.
        pub evicted = "evicted",
    }
}

series! {
    /// Metrics of reloads of one kind of file.
    pub struct ReloadSeries {}
    Counter "hlorank_credential_reloads_total" by result: "Reloads of changed certificate or token files: loaded, or refused, which keeps the previous ones in use" {
        /// Reloads that took effect.
        pub loaded = "loaded",
        /// Reloads that were refused; the previous files stay in use.
        pub refused = "refused",
    }
}

impl SecuritySeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let listener = |name| Arc::new(ConnectionSeries::new(recorder, &[("listener", name)]));
        let credential = |name| ReloadSeries::new(recorder, &[("credential", name)]);
        Self {
            calls: listener("calls"),
            admin: listener("admin"),
            metrics: listener("metrics"),
            certificate_expiry: recorder.series(
                "hlorank_tls_certificate_expiry_timestamp_seconds",
                "Expiry time of the certificate in use, in seconds since the Unix epoch; 0 without TLS",
                &[],
            ),
            certificate: credential("certificate"),
            tokens: credential("tokens"),
        }
    }
}
