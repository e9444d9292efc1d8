//! Hosts that calls may name. A web page can point its own name at this server (DNS rebinding), so that a browser sends it
//! calls of that page; but it cannot make the browser name another host.

use std::{borrow::Cow, net::IpAddr, str::FromStr};

use http::{HeaderMap, Uri, Version, header::HOST};

use crate::refusal::refusals;

/// Names of hosts that calls without credentials may name, beside loopback and every IP address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts {
    /// Lower-case names without the final dot; one that begins with a dot stands for every name that ends like it.
    names: Vec<String>,
    allows_all: bool,
}

refusals! {
    /// Why a request is refused for the host that it names.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    pub enum HostError {
        #[error("the request has no header host; HTTP/1.1 requires one, such as localhost:7070")]
        Missing => HOST_INVALID.at("host"),
        #[error("host is {found:?}, expected one name or address with or without a port, such as localhost:7070")]
        Invalid { found: String } => HOST_INVALID.at("host"),
        #[error(
            "the server does not answer calls to the host {found:?}: calls need no credentials, and any web page could send \
             them under a name of its own; call the server by its address or as localhost, or add the name to \
             --allowed-hosts"
        )]
        NotAllowed { found: String } => HOST_NOT_ALLOWED.at("host"),
    }
}

/// The host that a request names.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    Address,
    /// In lower case, without the final dot.
    Name(String),
}

impl AllowedHosts {
    /// Allows every host.
    pub(super) fn all() -> Self {
        Self {
            names: Vec::new(),
            allows_all: true,
        }
    }

    /// Checks the hosts that a request names: its authority (`:authority`, or a target in absolute form), or else its
    /// header `host`. Browsers name one in every request; old load balancers check servers by HTTP/1.0 without one.
    pub(crate) fn check(
        &self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), HostError> {
        let header = single_host(headers)?;
        let Some(authority) = uri.authority() else {
            return match header {
                Some(header) => self.allow(&header),
                None if version == Version::HTTP_11 => Err(HostError::Missing),
                None => Ok(()),
            };
        };
        // RFC 9112, 3.2.2: in HTTP/1.1, a target in absolute form replaces the header.
        if let Some(header) = header.filter(|_| version >= Version::HTTP_2) {
            // RFC 9113, 8.3.1: both name one host.
            if Host::read(&header) != Host::read(authority.as_str()) {
                return Err(HostError::Invalid {
                    found: format!("{header}, but :authority is {authority}"),
                });
            }
        }
        self.allow(authority.as_str())
    }

    fn allow(&self, sent: &str) -> Result<(), HostError> {
        match Host::read(sent) {
            None => Err(HostError::Invalid {
                found: sent.to_owned(),
            }),
            Some(Host::Address) => Ok(()),
            Some(Host::Name(name)) if self.has(&name) => Ok(()),
            Some(Host::Name(_)) => Err(HostError::NotAllowed {
                found: sent.to_owned(),
            }),
        }
    }

    fn has(&self, name: &str) -> bool {
        let is_listed = |listed: &String| match listed.strip_prefix('.') {
            Some(_) => name.ends_with(listed.as_str()),
            None => name == listed,
        };
        // RFC 6761: no name server is asked for these.
        let is_loopback = name == "localhost" || name.ends_with(".localhost");
        self.allows_all || is_loopback || self.names.iter().any(is_listed)
    }
}

impl Host {
    /// Reads a host with or without a port; `None` if it is neither a name nor an address.
    fn read(sent: &str) -> Option<Self> {
        let host = without_port(sent.trim())?;
        if let Some(address) = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
        {
            return address
                .parse::<IpAddr>()
                .ok()
                .filter(IpAddr::is_ipv6)
                .map(|_| Self::Address);
        }
        // The final dot makes a name absolute, and names the same host.
        let name = host.strip_suffix('.').unwrap_or(host);
        if name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_ipv4())
        {
            return Some(Self::Address);
        }
        let is_letter =
            |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
        let is_name = name
            .split('.')
            .all(|label| !label.is_empty() && label.bytes().all(is_letter));
        is_name.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// Returns the header `host`. A request with two may name one host to a proxy and another one to
/// the server.
fn single_host(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, HostError> {
    let mut sent = headers
        .get_all(HOST)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()));
    match (sent.next(), sent.next()) {
        (Some(first), Some(second)) => Err(HostError::Invalid {
            found: format!("{first}, {second}"),
        }),
        (header, _) => Ok(header),
    }
}

/// Returns what is in front of the port; `None` if the port is none.
fn without_port(sent: &str) -> Option<&str> {
    // The colons of an IPv6 address are in brackets.
    let colon = sent.rfind(':').filter(|&at| !sent[at..].contains(']'));
    let Some(colon) = colon else {
        return Some(sent);
    };
    let port = &sent[colon + 1..];
    if !port.is_empty() {
        // A number for Rust may also begin with a sign.
        let is_number = port.bytes().all(|digit| digit.is_ascii_digit());
        port.parse::<u16>().ok().filter(|_| is_number)?;
    }
    Some(&sent[..colon])
}

impl FromStr for AllowedHosts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut hosts = Self::default();
        if text == "off" {
            return Ok(hosts);
        }
        for part in text.split(',').map(str::trim) {
            let name = part.strip_prefix("*.").unwrap_or(part);
            let dot = if name.len() < part.len() { "." } else { "" };
            match Host::read(name) {
                // The guard comes first, because `*` is no name.
                _ if part == "*" => hosts.allows_all = true,
                Some(Host::Name(read)) if !name.contains(':') => {
                    hosts.names.push(format!("{dot}{read}"));
                }
                _ => {
                    return Err(format!(
                        "expected names of hosts without ports, such as hlorank.example.com,*.svc.cluster.local, or `*` for \
                         all of them, or `off`; {part:?} is none"
                    ));
                }
            }
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(allowed: &str, version: Version, uri: &str, hosts: &[&str]) -> Result<(), HostError> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_str(host).unwrap());
        }
        allowed
            .parse::<AllowedHosts>()
            .unwrap()
            .check(version, &uri.parse().unwrap(), &headers)
    }

    fn of(allowed: &str, host: &str) -> Result<(), HostError> {
        check(allowed, Version::HTTP_11, "/", &[host])
    }

    #[test]
    fn loopback_and_addresses_are_answered() {
        for host in [
            "localhost",
            "LocalHost:7070",
            "localhost.",
            "a.localhost:1",
            "127.0.0.1",
            "127.0.0.1:7070",
            "10.1.2.3:7071",
            "[::1]",
            "[::1]:7070",
            "[2001:db8::7]:1",
            "127.0.0.1:",
        ] {
            assert_eq!(of("off", host), Ok(()), "{host}");
        }
    }

    #[test]
    fn other_names_are_answered_if_they_are_listed() {
        for host in [
            "evil.example",
            "evil.example:7070",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "xlocalhost",
        ] {
            assert!(
                matches!(of("off", host), Err(HostError::NotAllowed { .. })),
                "{host}"
            );
            assert_eq!(of("*", host), Ok(()), "{host}");
        }
        for host in [
            "hlorank",
            "HLORANK:7070",
            "a.svc.cluster.local.",
            "b.a.svc.cluster.local",
        ] {
            assert_eq!(of("hlorank, *.svc.cluster.local", host), Ok(()), "{host}");
        }
        for host in [
            "hlorank.evil.example",
            "svc.cluster.local",
            "xsvc.cluster.local",
        ] {
            assert!(of("hlorank,*.svc.cluster.local", host).is_err(), "{host}");
        }
    }

    #[test]
    fn a_host_that_cannot_be_read_is_refused_whatever_is_allowed() {
        for host in [
            "",
            " ",
            "a b",
            "a:b",
            "a:70000",
            "a:+1",
            "user@localhost",
            "[::1",
            "::1",
            "[127.0.0.1]",
            "a..b",
            "%61",
            "ö",
        ] {
            let refused = of("*", host);
            assert!(
                matches!(refused, Err(HostError::Invalid { .. })),
                "{host}: {refused:?}"
            );
        }
        let twice = check("*", Version::HTTP_11, "/", &["localhost", "localhost"]);
        assert!(matches!(twice, Err(HostError::Invalid { .. })));
    }

    #[test]
    fn every_version_of_http_names_its_host_in_its_way() {
        let missing = check("off", Version::HTTP_11, "/", &[]);
        assert_eq!(missing, Err(HostError::Missing));
        let evil = "http://evil.example/";
        for (version, uri, hosts, is_answered) in [
            // The target replaces the header.
            (Version::HTTP_11, evil, &["localhost"][..], false),
            (Version::HTTP_10, "/", &[], true),
            (Version::HTTP_2, "/", &[], true),
            (Version::HTTP_2, evil, &[], false),
            (
                Version::HTTP_11,
                "http://localhost/",
                &["evil.example"],
                true,
            ),
            (Version::HTTP_2, "http://localhost:1/", &["LOCALHOST"], true),
        ] {
            let checked = check("off", version, uri, hosts);
            assert_eq!(checked.is_ok(), is_answered, "{version:?} {uri} {hosts:?}");
        }
        let local = "http://localhost:1/";
        let differ = check("*", Version::HTTP_2, local, &["evil.example"]);
        assert!(
            matches!(differ, Err(HostError::Invalid { .. })),
            "{differ:?}"
        );
    }

    #[test]
    fn a_list_of_hosts_is_read() {
        let read = |text: &str| text.parse::<AllowedHosts>().unwrap();
        assert_eq!(read("off"), AllowedHosts::default());
        assert_eq!(read("*"), AllowedHosts::all());
        assert_eq!(read("hlorank").names, ["hlorank"]);
        assert_eq!(
            read("hlorank,*.example.com").names,
            ["hlorank", ".example.com"]
        );
        for wrong in [
            "", "a,", "a:7070", "http://a", "10.0.0.1", "*.", "a b", "**",
        ] {
            assert!(wrong.parse::<AllowedHosts>().is_err(), "{wrong}");
        }
    }
}
