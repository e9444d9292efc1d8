use clap::{Args, value_parser};

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
}
