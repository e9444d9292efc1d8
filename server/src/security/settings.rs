use std::path::PathBuf;

use clap::{Args, value_parser};

use super::{AllowedHosts, TrustedProxies};
use crate::or_off::OrOff;

/// Settings of TLS, tokens and connections.
#[derive(Clone, Debug, Args)]
pub struct SecuritySettings {
    /// PEM file with the certificate chain
    ///
    /// It is for the gRPC and admin listeners; `off` disables TLS. This file and the next three are read again when they
    /// change, and on SIGHUP.
    #[arg(long, value_name = "FILE", default_value = "off")]
    pub tls_certificate: OrOff<PathBuf>,

    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", default_value = "off")]
    pub tls_key: OrOff<PathBuf>,

    /// PEM file with the authorities of client certificates
    ///
    /// They must have signed the certificate of every client; `off` requires no client certificates.
    #[arg(long, value_name = "FILE", default_value = "off")]
    pub tls_client_ca: OrOff<PathBuf>,

    /// File with the digests of valid bearer tokens
    ///
    /// One per line: NAME SCOPES sha256:HEX, where SCOPES is some of `read`, `report` and `admin`, with commas between them;
    /// `off` requires no tokens.
    #[arg(long, value_name = "FILE", default_value = "off")]
    pub tokens: OrOff<PathBuf>,

    /// Maximum number of connections per listener
    ///
    /// For the gRPC listener and for the admin listener. At the maximum, a new connection replaces the one that has carried
    /// no call for the longest time, and is closed immediately if all others have calls in flight.
    #[arg(long, value_name = "CONNECTIONS", default_value_t = 1024, value_parser = value_parser!(u32).range(1..), help_heading = "Limits")]
    pub max_connections: u32,

    /// Proxies in front of the server, comma-separated
    ///
    /// Networks or addresses. For their connections, the limits per address apply to the client that they name in
    /// `x-forwarded-for`: the last address that is not one of these proxies; `off` ignores the header.
    #[arg(long, value_name = "NETWORKS", default_value = "off")]
    pub trusted_proxies: TrustedProxies,

    /// Names of hosts that clients may call, comma-separated
    ///
    /// A listener whose calls need neither tokens nor client certificates answers only calls to loopback, to IP addresses and
    /// to these names, because any web page can point a name of its own at the server; the metrics listener always does.
    /// `*.example.com` is every name below example.com, `*` is every name; `off` adds none.
    #[arg(long, value_name = "NAMES", default_value = "off")]
    pub allowed_hosts: AllowedHosts,
}
