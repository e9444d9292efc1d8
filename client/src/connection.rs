use std::time::Duration;

use tonic::transport::{ClientTlsConfig, Endpoint};

use crate::{Address, ClientError, Identity, TlsSettingsError, Token, credentials::authorities};

/// Settings of a connection: TLS, token, timeouts, retries and sizes.
///
/// Calls to `https://` use TLS 1.2 or 1.3, and the certificate of the server must name the host in the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Certificate authorities that are trusted at `https://`, in PEM. By default those of the system, or of
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` if these are set; connecting fails if there are none.
    pub authorities: Option<String>,
    /// Certificate and key for servers at `https://` that require one (mutual TLS). By default none.
    pub identity: Option<Identity>,
    /// Token that is sent with every call as `authorization: Bearer`. By default none. Everybody on the network path
    /// can read it at `http://`, so use that only on loopback or in front of a proxy that adds TLS.
    pub token: Option<Token>,
    /// Maximum time for opening a connection, and again for its TLS handshake. Default: 10 seconds.
    pub connect_timeout: Duration,
    /// Maximum time of a call, retries included, unless the request sets its own; `None` is unlimited. Default:
    /// 30 seconds. It does not apply to streams and admin calls.
    pub timeout: Option<Duration>,
    /// Maximum number of retries of a call if the server is unavailable or asks for a retry. Default: [`u32::MAX`], so
    /// that only time limits them: the deadline of the call, or 30 seconds after the first failure if it has none.
    pub retries: u32,
    /// Maximum size of one message in either direction, in bytes. Default: 64 MiB, the default of the server.
    pub message_bytes: usize,
    /// HTTP/2 flow-control window of one call, in bytes; the window of the connection is four times as large. Default:
    /// 8 MiB, with which messages of megabytes take a third of the time.
    pub window_bytes: u32,
}

/// Interval between keep-alive pings during a call, and the maximum time until the server answers one.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Maximum window size of HTTP/2.
const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// More than one, so that a stream whose scores are not read leaves room for other calls of its connection.
const CALLS_WITH_FULL_WINDOWS: u32 = 4;

impl Default for Connection {
    fn default() -> Self {
        Self {
            authorities: None,
            identity: None,
            token: None,
            connect_timeout: Duration::from_secs(10),
            timeout: Some(Duration::from_secs(30)),
            retries: u32::MAX,
            message_bytes: 64 << 20,
            window_bytes: 8 << 20,
        }
    }
}

impl Connection {
    /// Returns the endpoint of a server.
    pub(crate) fn endpoint(&self, address: &Address) -> Result<Endpoint, ClientError> {
        let channel = Endpoint::from_shared(address.to_string())
            .map_err(|source| ClientError::no_connection(&address.to_string(), &source))?;
        let channel = self.secured(channel, address)?;
        // The server may know only the name as its own host.
        let origin = address.origin().and_then(|origin| origin.parse().ok());
        let channel = match origin {
            Some(origin) => channel.origin(origin),
            None => channel,
        };
        let connection_window = self
            .window_bytes
            .saturating_mul(CALLS_WITH_FULL_WINDOWS)
            .min(LARGEST_WINDOW);
        Ok(channel
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .connect_timeout(self.connect_timeout)
            .initial_stream_window_size(self.window_bytes)
            .initial_connection_window_size(connection_window))
    }

    /// Adds TLS if the address has it. Certificates without it would be a mistake.
    fn secured(&self, channel: Endpoint, address: &Address) -> Result<Endpoint, ClientError> {
        let endpoint = || address.to_string();
        if address.is_tls {
            let tls = self.tls(address).and_then(|tls| {
                // Everything else was checked before.
                let unusable = match self.authorities {
                    None => TlsSettingsError::NoSystemAuthority,
                    Some(_) => TlsSettingsError::Host,
                };
                channel.tls_config(tls).map_err(|_| unusable)
            });
            return tls.map_err(|source| ClientError::Tls {
                endpoint: endpoint(),
                source,
            });
        }
        if self.authorities.is_none() && self.identity.is_none() {
            Ok(channel)
        } else {
            Err(ClientError::NoTls {
                endpoint: endpoint(),
            })
        }
    }

    /// Returns the TLS settings.
    fn tls(&self, address: &Address) -> Result<ClientTlsConfig, TlsSettingsError> {
        // The `connect_timeout` of the endpoint does not cover the handshake.
        let tls = ClientTlsConfig::new().timeout(self.connect_timeout);
        let tls = match &address.name {
            Some(name) => tls.domain_name(name),
            None => tls,
        };
        let tls = match &self.authorities {
            Some(pem) => tls.ca_certificate(authorities(pem)?),
            None => tls.with_native_roots(),
        };
        Ok(match &self.identity {
            Some(identity) => tls.identity(identity.pem()?),
            None => tls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_token_nor_key_is_printed() {
        let identity = Identity {
            certificate: "public".to_owned(),
            key: "secret".to_owned(),
        };
        let connection = Connection {
            identity: Some(identity),
            token: Some("secret".parse().unwrap()),
            ..Connection::default()
        };
        let printed = format!("{connection:?}");
        assert!(
            printed.contains("public") && !printed.contains("secret"),
            "{printed}"
        );
    }
}
