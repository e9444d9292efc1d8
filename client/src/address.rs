//! Addresses of servers. The Python client reads them by the same rules; `tests/data/endpoints.json` holds both to them.

use std::{
    fmt::{self, Display, Formatter},
    net::{IpAddr, Ipv6Addr},
    str::FromStr,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, lookup_host},
    time::timeout,
};

use crate::{ClientError, ParseAddressError};

/// Address of a server: a host and a port, with TLS if the text begins with `https://`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) is_tls: bool,
    /// A name, or an IP address, in brackets if it is one of IPv6.
    host: String,
    port: u16,
    /// The name that `host` is one of several addresses of, for the server's certificate and its calls.
    pub(crate) name: Option<String>,
}

/// What begins a connection of HTTP/2 without TLS.
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The first byte of an alert of TLS.
const TLS_ALERT: u8 = 0x15;

/// Maximum time to find out whether a server speaks TLS.
const PROBE_TIME: Duration = Duration::from_secs(1);

/// Port of `https://` without one.
const HTTPS_PORT: &str = "443";

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let wrong = |address: &str, reason: &str| ParseAddressError {
            address: address.to_owned(),
            reason: reason.to_owned(),
        };
        if text.trim().is_empty() {
            return Err(wrong("the server", "the address is empty"));
        }
        if text.contains(|letter: char| letter.is_whitespace() || letter.is_control()) {
            return Err(wrong(&format!("{text:?}"), "it contains white space"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => ("http".to_owned(), text),
        };
        let default_port = match scheme.as_str() {
            "http" => "",
            "https" => HTTPS_PORT,
            _ => return Err(wrong(text, "only http:// and https:// are supported")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, follows) = rest.split_at(end);
        // Without the password, which would reach logs.
        if let Some((_, host)) = authority.rsplit_once('@') {
            return Err(wrong(
                host,
                "a name and a password are not sent; use a token",
            ));
        }
        if authority.contains(',') {
            return Err(wrong(text, "it has several addresses, expected one"));
        }
        if !matches!(follows, "" | "/") {
            return Err(wrong(text, "nothing may follow the port"));
        }
        if authority.matches(':').count() > 1 && !authority.starts_with('[') {
            return Err(wrong(
                text,
                "an IPv6 address needs brackets, as in [::1]:7070",
            ));
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some(parts) if !authority.ends_with(']') => parts,
            _ => (authority, default_port),
        };
        if host.is_empty() {
            return Err(wrong(text, "the host is missing"));
        }
        if !is_host(host) {
            let reason = format!("the host '{host}' is neither a name nor an address");
            return Err(wrong(text, &reason));
        }
        if port.is_empty() {
            return Err(wrong(text, "the port is missing"));
        }
        let number = port.parse().ok().filter(|number| *number > 0);
        let is_plain = port.starts_with(|digit: char| matches!(digit, '1'..='9'));
        let Some(port) = number.filter(|_| is_plain) else {
            let reason = format!("the port '{port}' is not a number from 1 to 65535");
            return Err(wrong(text, &reason));
        };
        Ok(Self {
            is_tls: scheme == "https",
            host: host.to_owned(),
            port,
            name: None,
        })
    }
}

fn is_host(text: &str) -> bool {
    match text.strip_prefix('[') {
        Some(address) => address.strip_suffix(']').is_some_and(is_ipv6),
        None => text
            .bytes()
            .all(|letter| letter.is_ascii_alphanumeric() || b"._-".contains(&letter)),
    }
}

/// Returns whether a text is an IPv6 address, which may name a network interface, as `fe80::1%eth0` does.
fn is_ipv6(text: &str) -> bool {
    let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
    address.parse::<Ipv6Addr>().is_ok() && !zone.is_empty()
}

impl Display for Address {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}", self.authority())
    }
}

impl Address {
    /// Returns host and port.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the address by which calls name the server, if it is another than the one that is connected to.
    pub(crate) fn origin(&self) -> Option<String> {
        let host = self.name.clone()?;
        let name = Self {
            host,
            ..self.clone()
        };
        Some(name.to_string())
    }

    /// Returns the error of a call, after finding out why a connection without TLS broke.
    pub(crate) async fn explain(&self, error: ClientError) -> ClientError {
        if error.is_broken_connection() && !self.is_tls && self.speaks_tls().await {
            let endpoint = self.to_string();
            return ClientError::SpeaksTls { endpoint };
        }
        error
    }

    /// Returns whether a server answers the start of a connection without TLS by an alert of TLS.
    async fn speaks_tls(&self) -> bool {
        let asked = timeout(PROBE_TIME, async {
            let mut stream = TcpStream::connect(self.authority()).await?;
            stream.write_all(HTTP_2).await?;
            stream.read_u8().await
        });
        matches!(asked.await, Ok(Ok(TLS_ALERT)))
    }

    /// Returns the addresses of all replicas behind this one: those of its name if there are several, as a headless service of
    /// Kubernetes has, or the address itself.
    pub(crate) async fn resolve(self) -> Vec<Self> {
        // A name that cannot be resolved fails when it is connected to, which says why.
        let found = match lookup_host(self.authority()).await {
            Ok(found) => found.map(|address| address.ip()).collect(),
            Err(_) => Vec::new(),
        };
        self.with_addresses(found)
    }

    /// Takes the addresses of the name.
    fn with_addresses(self, found: Vec<IpAddr>) -> Vec<Self> {
        // A server on both versions of IP has an address of each, so those of one version are the replicas.
        let (four, six): (Vec<IpAddr>, Vec<IpAddr>) = found.into_iter().partition(IpAddr::is_ipv4);
        let mut replicas = if six.len() > four.len() { six } else { four };
        replicas.sort_unstable();
        replicas.dedup();
        if replicas.len() < 2 {
            return vec![self];
        }
        let replica = |address| Self {
            is_tls: self.is_tls,
            host: match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            },
            port: self.port,
            name: Some(self.host.clone()),
        };
        replicas.into_iter().map(replica).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cases(name: &str) -> Vec<Value> {
        let file = include_str!("../../tests/data/endpoints.json");
        let file: Value = serde_json::from_str(file).unwrap();
        file[name].as_array().unwrap().clone()
    }

    fn parse(case: &Value) -> Result<Address, ParseAddressError> {
        case["text"].as_str().unwrap().parse()
    }

    #[test]
    fn addresses_are_read_as_the_shared_table_says() {
        for case in cases("read") {
            let address = parse(&case).unwrap();
            assert_eq!(case["authority"], address.authority(), "{case}");
            assert_eq!(case["tls"], address.is_tls, "{case}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_as_the_shared_table_says() {
        for case in cases("refused") {
            let error = parse(&case).unwrap_err().to_string();
            let reason = case["reason"].as_str().unwrap();
            assert!(error.contains(reason), "{case}: {error}");
            assert!(!error.contains("word@"), "{error}");
        }
    }

    #[test]
    fn a_name_with_several_addresses_stands_for_as_many_replicas() {
        let replicas = |text: &str, found: &[&str]| {
            let found = found.iter().map(|address| address.parse().unwrap());
            let address: Address = text.parse().unwrap();
            let replicas = address.with_addresses(found.collect());
            let shown = replicas.iter().map(Address::to_string);
            shown.collect::<Vec<_>>()
        };
        let name = "https://ranker.example:7070";
        assert_eq!(
            replicas(name, &["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"]),
            ["https://10.0.0.1:7070", "https://10.0.0.2:7070"]
        );
        assert_eq!(
            replicas(name, &["fd00::1", "fd00::2", "10.0.0.1"]),
            ["https://[fd00::1]:7070", "https://[fd00::2]:7070"]
        );
        // One server that listens on both versions of IP.
        assert_eq!(
            replicas("localhost:7070", &["::1", "127.0.0.1"]),
            ["http://localhost:7070"]
        );
    }
}
