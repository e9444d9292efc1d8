//! Proxies whose header names the client.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use http::HeaderMap;
use ipnet::IpNet;

/// Networks of proxies that are trusted to name their clients. Empty for `off`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// Header in which each proxy appends the address of the client that connected to it.
const FORWARDED_FOR: &str = "x-forwarded-for";

impl TrustedProxies {
    /// Returns the address of the client of a call: the peer of the connection, or, if that is a trusted proxy, the last
    /// address in `x-forwarded-for` that is not a trusted proxy. If the header names trusted proxies only, the client is
    /// the first of them. Entries before one that is not an address are ignored, because no proxy vouches for them.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        // A socket for both families has IPv4 addresses in their form of IPv6, which no network of
        // IPv4 contains.
        let mut client = peer.to_canonical();
        let values: Vec<&str> = headers
            .get_all(FORWARDED_FOR)
            .iter()
            // A value that is no text ends the list, as an entry that is no address does.
            .map(|value| value.to_str().unwrap_or_default())
            .collect();
        // Each proxy appends its peer, so the list is read from its end. `client` is the last
        // address that somebody trusted has named; what an untrusted one says about its own client
        // may be a lie.
        for entry in values.iter().flat_map(|value| value.split(',')).rev() {
            if !self.trusts(client) {
                break;
            }
            let Some(named) = address(entry.trim()) else {
                break;
            };
            client = named;
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Reads an address, with or without a port.
fn address(entry: &str) -> Option<IpAddr> {
    let with_port = || entry.parse::<SocketAddr>().ok().map(|address| address.ip());
    let address = entry.parse::<IpAddr>().ok().or_else(with_port)?;
    Some(address.to_canonical())
}

impl FromStr for TrustedProxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self::default());
        }
        let network = |part: &str| {
            let single = || part.parse::<IpAddr>().ok().map(IpNet::from);
            part.parse::<IpNet>().ok().or_else(single).ok_or_else(|| {
                format!("expected networks or addresses, such as 10.0.0.0/8,fd00::/8, or `off`; {part:?} is neither")
            })
        };
        text.split(',')
            .map(|part| network(part.trim()))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn client(proxies: &str, peer: &str, forwarded: &[&'static str]) -> String {
        let proxies: TrustedProxies = proxies.parse().unwrap();
        let headers = forwarded.iter().map(|value| {
            (
                http::HeaderName::from_static(FORWARDED_FOR),
                HeaderValue::from_static(value),
            )
        });
        proxies
            .client(peer.parse().unwrap(), &headers.collect())
            .to_string()
    }

    const PROXIES: &str = "10.0.0.0/8,127.0.0.1,fd00::/8";

    #[test]
    fn a_trusted_proxy_names_its_client() {
        for (peer, forwarded, expected) in [
            ("127.0.0.1", &["192.0.2.7"][..], "192.0.2.7"),
            ("::ffff:127.0.0.1", &["192.0.2.7:4000"], "192.0.2.7"),
            ("fd00::1", &["[2001:db8::7]:4000"], "2001:db8::7"),
            // Through two proxies, in one header or in two.
            ("10.0.0.1", &["192.0.2.7, 10.1.1.1"], "192.0.2.7"),
            ("10.0.0.1", &["192.0.2.7", "10.1.1.1"], "192.0.2.7"),
            // A client among the proxies.
            ("10.0.0.1", &["10.1.1.1"], "10.1.1.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
        ] {
            assert_eq!(client(PROXIES, peer, forwarded), expected, "{forwarded:?}");
        }
    }

    #[test]
    fn nobody_else_is_believed() {
        for (proxies, peer, forwarded, expected) in [
            (PROXIES, "192.0.2.1", "192.0.2.7", "192.0.2.1"),
            // The client sent the first.
            (PROXIES, "127.0.0.1", "198.51.100.1, 192.0.2.7", "192.0.2.7"),
            (PROXIES, "127.0.0.1", "198.51.100.1, nonsense", "127.0.0.1"),
            ("off", "127.0.0.1", "192.0.2.7", "127.0.0.1"),
        ] {
            assert_eq!(client(proxies, peer, &[forwarded]), expected, "{forwarded}");
        }
    }

    #[test]
    fn networks_are_a_list_or_off() {
        let read = |text: &str| {
            let TrustedProxies(networks) = text.parse().unwrap();
            let shown = networks.iter().map(ToString::to_string);
            shown.collect::<Vec<_>>()
        };
        assert!(read("off").is_empty());
        assert_eq!(read("10.0.0.0/8"), ["10.0.0.0/8"]);
        assert_eq!(read("10.0.0.0/8,fd00::/8"), ["10.0.0.0/8", "fd00::/8"]);
        for wrong in [
            "",
            "10.0.0.0/33",
            "proxy.example",
            "10.0.0.1,",
            "off,10.0.0.1",
        ] {
            let refused = wrong.parse::<TrustedProxies>().unwrap_err();
            assert!(refused.contains("`off`"), "{wrong}");
        }
    }
}
