use std::{error::Error, time::Duration};

use tonic::transport::{ClientTlsConfig, Endpoint};

use crate::{ClientError, Identity, Token, credentials::authorities};

/// How a client connects, and how long and how often it tries.
///
/// Calls to `https://` go over TLS 1.2 or 1.3, to a server whose certificate names the host that is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Whose certificates servers at `https://` have: authorities in PEM. Unless set, those that the system trusts
    /// (`SSL_CERT_FILE` and `SSL_CERT_DIR`, where they are set); without any of them, connecting fails.
    pub authorities: Option<String>,
    /// Shown to servers at `https://` that ask for a certificate (mutual TLS); nothing unless set.
    pub identity: Option<Identity>,
    /// Sent with every call as `authorization: Bearer`; nothing unless set. At `http://` everybody on the way can
    /// read it: that is for loopback, and for proxies that speak TLS themselves.
    pub token: Option<Token>,
    /// How long to wait for a connection, and as long again for TLS on it; 10 seconds unless set.
    pub connect_timeout: Duration,
    /// How long a call may take, retries included, where it sets no time itself; 30 seconds unless set, `None` for as
    /// long as it takes. Streams and admin calls have no such limit.
    pub timeout: Option<Duration>,
    /// How often a call is tried again where the server is unavailable, or asks for it; 4 times unless set.
    pub retries: u32,
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
        Self {
            authorities: None,
            identity: None,
            token: None,
            connect_timeout: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(30)),
            retries: 4,
            message_bytes: 64 << 20,
            window_bytes: 8 << 20,
        }
    }
}

impl Connection {
    /// How to connect to a server such as `http://127.0.0.1:7070` or `https://ranker.example:7070`.
    pub(crate) fn endpoint(&self, endpoint: &str) -> Result<Endpoint, ClientError> {
        let channel = Endpoint::from_shared(endpoint.to_owned())
            .map_err(|source| ClientError::no_connection(endpoint, source))?;
        let channel = match channel.uri().scheme_str() {
            Some("http") if self.authorities.is_none() && self.identity.is_none() => channel,
            Some("http") => return Err(ClientError::NoTls { endpoint: endpoint.to_owned() }),
            Some("https") => {
                let with_tls = self.tls().and_then(|tls| Ok(channel.tls_config(tls)?));
                with_tls.map_err(|source| ClientError::Tls { endpoint: endpoint.to_owned(), source })?
            }
            _ => return Err(ClientError::Scheme { endpoint: endpoint.to_owned() }),
        };
        let connection_window = self.window_bytes.saturating_mul(CALLS_WITH_FULL_WINDOWS).min(LARGEST_WINDOW);
        Ok(channel
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .connect_timeout(self.connect_timeout)
            .initial_stream_window_size(self.window_bytes)
            .initial_connection_window_size(connection_window))
    }

    /// Who is trusted, and what is shown.
    fn tls(&self) -> Result<ClientTlsConfig, Box<dyn Error + Send + Sync>> {
        // A handshake is no part of what `connect_timeout` of the endpoint limits.
        let tls = ClientTlsConfig::new().timeout(self.connect_timeout);
        let tls = match &self.authorities {
            Some(pem) => tls.ca_certificate(authorities(pem)?),
            None => tls.with_native_roots(),
        };
        Ok(match &self.identity {
            Some(identity) => tls.identity(identity.pem()),
            None => tls,
        })
    }
}
