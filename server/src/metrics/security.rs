use std::sync::Arc;

use metrics::{Counter, Gauge};

use super::{Family, Recorder};

const OPEN: Family<Gauge, 1> =
    Family::new("hlorank_connections", ["listener"], "Connections that are open or shake hands");

const CONNECTIONS: Family<Counter, 2> = Family::new(
    "hlorank_connections_total",
    ["listener", "result"],
    "Connections that were taken, closed at once for there were --max-connections, or ended by their TLS handshake",
);

const EXPIRY: Family<Gauge, 0> = Family::new(
    "hlorank_tls_certificate_expiry_timestamp_seconds",
    [],
    "When the certificate in use ends, since the Unix epoch; 0 without TLS",
);

const RELOADS: Family<Counter, 2> = Family::new(
    "hlorank_credential_reloads_total",
    ["credential", "result"],
    "Changed files of certificates or tokens: loaded, or refused, so that those before stay",
);

/// Connections and what they are secured with.
pub struct SecuritySeries {
    /// Of the gRPC listener.
    pub calls: Arc<ConnectionSeries>,
    /// Of the admin listener.
    pub admin: Arc<ConnectionSeries>,
    /// Of the certificate in use.
    pub certificate_expiry: Gauge,
    /// Of certificates.
    pub certificate: ReloadSeries,
    /// Of tokens.
    pub tokens: ReloadSeries,
}

/// Connections to one listener.
pub struct ConnectionSeries {
    /// Now.
    pub open: Gauge,
    /// They may make calls.
    pub accepted: Counter,
    /// There were too many.
    pub over_limit: Counter,
    /// The client spoke no TLS, did not trust the server, or showed no certificate that the server trusts.
    pub handshake_failed: Counter,
    /// The client took too long.
    pub handshake_timeout: Counter,
}

/// Files that changed.
pub struct ReloadSeries {
    /// In use now.
    pub loaded: Counter,
    /// What was before stays.
    pub refused: Counter,
}

impl SecuritySeries {
    pub(super) fn new(recorder: &Recorder) -> Self {
        Self {
            calls: Arc::new(ConnectionSeries::new(recorder, "calls")),
            admin: Arc::new(ConnectionSeries::new(recorder, "admin")),
            certificate_expiry: EXPIRY.series(recorder, []),
            certificate: ReloadSeries::new(recorder, "certificate"),
            tokens: ReloadSeries::new(recorder, "tokens"),
        }
    }
}

impl ConnectionSeries {
    fn new(recorder: &Recorder, listener: &str) -> Self {
        let result = |result| CONNECTIONS.series(recorder, [listener, result]);
        Self {
            open: OPEN.series(recorder, [listener]),
            accepted: result("accepted"),
            over_limit: result("over_limit"),
            handshake_failed: result("handshake_failed"),
            handshake_timeout: result("handshake_timeout"),
        }
    }
}

impl ReloadSeries {
    fn new(recorder: &Recorder, credential: &str) -> Self {
        Self {
            loaded: RELOADS.series(recorder, [credential, "loaded"]),
            refused: RELOADS.series(recorder, [credential, "refused"]),
        }
    }
}
