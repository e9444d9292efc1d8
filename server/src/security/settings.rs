use std::time::Duration;

use clap::{Args, value_parser};
use hlorank_arguments::{bytes_within, positive_duration};

use super::{AllowedHosts, TrustedProxies};
use crate::file_or_off::FileOrOff;

/// Settings of TLS, tokens and connections.
#[derive(Clone, Debug, Args)]
pub struct SecuritySettings {
    /// PEM file with the certificate chain
    ///
    /// It is for the gRPC and admin listeners; `off` disables TLS. This file and the next three are read again when they
    /// change, and on SIGHUP.
    #[arg(
        long,
        env = "HLORANK_TLS_CERTIFICATE",
        value_name = "FILE",
        default_value = "off"
    )]
    pub tls_certificate: FileOrOff,

    /// PEM file with the private key of the certificate
    #[arg(
        long,
        env = "HLORANK_TLS_KEY",
        value_name = "FILE",
        default_value = "off"
    )]
    pub tls_key: FileOrOff,

    /// PEM file with the authorities of client certificates
    ///
    /// They must have signed the certificate of every client; `off` requires no client certificates.
    #[arg(
        long,
        env = "HLORANK_TLS_CLIENT_CA",
        value_name = "FILE",
        default_value = "off"
    )]
    pub tls_client_ca: FileOrOff,

    /// File with the digests of valid bearer tokens
    ///
    /// One per line: NAME SCOPES sha256:HEX, where SCOPES is some of `read`, `report` and `admin`, with commas between them;
    /// `off` requires no tokens.
    #[arg(
        long,
        env = "HLORANK_TOKENS",
        value_name = "FILE",
        default_value = "off"
    )]
    pub tokens: FileOrOff,

    /// Maximum number of connections per listener
    ///
    /// For the gRPC listener and for the admin listener. At the maximum, a new connection replaces the one that has carried
    /// no call for the longest time, and is closed immediately if all others have calls in flight.
    #[arg(long, env = "HLORANK_MAX_CONNECTIONS", value_name = "CONNECTIONS", default_value_t = 1024, value_parser = value_parser!(u32).range(1..))]
    #[arg(help_heading = "Limits")]
    pub max_connections: u32,

    /// Time until an idle connection is closed, in seconds
    ///
    /// It is idle if no call is in flight; clients connect again for their next call.
    #[arg(long, env = "HLORANK_MAX_IDLE_SECONDS", value_name = "SECONDS", default_value = "900", value_parser = positive_duration)]
    #[arg(help_heading = "Limits")]
    pub max_idle_seconds: Duration,

    /// Proxies in front of the server, comma-separated
    ///
    /// Networks or addresses. For their connections, the limits per address apply to the client that they name in
    /// `x-forwarded-for`: the last address that is not one of these proxies; `off` ignores the header.
    #[arg(
        long,
        env = "HLORANK_TRUSTED_PROXIES",
        value_name = "NETWORKS",
        default_value = "off"
    )]
    pub trusted_proxies: TrustedProxies,

    /// Names of hosts that clients may call, comma-separated
    ///
    /// A listener whose calls need neither tokens nor client certificates answers only calls to loopback, to IP addresses and
    /// to these names, because any web page can point a name of its own at the server; the metrics listener always does.
    /// `*.example.com` is every name below example.com, `*` is every name; `off` adds none.
    #[arg(
        long,
        env = "HLORANK_ALLOWED_HOSTS",
        value_name = "NAMES",
        default_value = "off"
    )]
    pub allowed_hosts: AllowedHosts,

    /// Maximum number of calls in flight per connection
    ///
    /// Clients hold back further calls.
    #[arg(long, env = "HLORANK_MAX_CONNECTION_CALLS", value_name = "CALLS", default_value_t = 200, value_parser = value_parser!(u32).range(1..))]
    #[arg(help_heading = "Limits")]
    pub max_connection_calls: u32,

    /// Maximum size of the headers of a call in bytes
    ///
    /// It counts names, values and 32 bytes per header.
    #[arg(long, env = "HLORANK_MAX_HEADER_BYTES", value_name = "BYTES", default_value_t = 16 << 10, value_parser = bytes_within::<u32>(1024..=u32::MAX.into()))]
    #[arg(help_heading = "Limits")]
    pub max_header_bytes: u32,
}
