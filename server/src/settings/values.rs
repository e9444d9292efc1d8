//! Values of settings that clap has no type for.

use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use hlorank_arguments::positive_duration;

/// Models by task or feature set: `TASK=MODEL,SET=MODEL`, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultModels(pub Vec<(String, String)>);

/// Address and port of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

/// A time above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(pub Duration);

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        positive_duration(text).map(Self)
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self(address));
        }
        let expected = "expected an address or a host name with a port, such as localhost:7070, [::1]:7070, or 0.0.0.0:7070 for \
                        every IPv4 address";
        let (host, port) = text.rsplit_once(':').ok_or(expected)?;
        let port: u16 = port.parse().map_err(|_| expected)?;
        let is_name =
            |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(expected.to_owned());
        }
        let address = look_up(host, port).map(Self);
        address.map_err(|error| format!("the host name `{host}` has no address: {error}"))
    }
}

/// Returns an address of a host name: the first IPv4 address, because clients try that of `localhost`, or else the first.
fn look_up(host: &str, port: u16) -> io::Result<SocketAddr> {
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let first_v4 = found.iter().find(|address| address.is_ipv4());
    let address = first_v4.or(found.first()).copied();
    address.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

impl FromStr for DefaultModels {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text == "none" {
            return Ok(Self::default());
        }
        let expected = "expected TASK=MODEL or SET=MODEL, separated by commas and each task and set once, or `none`";
        let mut models = BTreeMap::new();
        for pair in text.split(',') {
            // A set may have `=` in its name, a folder of models has not.
            let (set, model) = pair.rsplit_once('=').ok_or(expected)?;
            let (set, model) = (set.trim(), model.trim());
            let known = models.insert(set.to_owned(), model.to_owned());
            if set.is_empty() || model.is_empty() || known.is_some() {
                return Err(expected);
            }
        }
        Ok(Self(models.into_iter().collect()))
    }
}

/// Returns the absolute path of a file in a folder. The loader of libraries looks for a name without a folder.
pub(super) fn absolute_or_name(path: PathBuf) -> io::Result<PathBuf> {
    if path.components().count() > 1 {
        std::path::absolute(path)
    } else {
        Ok(path)
    }
}

/// Reads a fraction, from 0 to 1.
pub(super) fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text
        .parse()
        .ok()
        .filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected a number from 0 to 1, such as 0.01".to_owned())
}

pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0);
    factor.ok_or_else(|| "expected a factor above 0, such as 3 or 1.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::or_off::OrOff;

    #[test]
    fn default_models_are_a_list() {
        let read = |text: &str| text.parse().map(|DefaultModels(models)| models);
        let pair = |set: &str, model: &str| (set.to_owned(), model.to_owned());
        assert_eq!(
            read("b=2,a=b=1").unwrap(),
            [pair("a=b", "1"), pair("b", "2")]
        );
        assert!(read("none").unwrap().is_empty());
        for wrong in ["", "a", "a=", "=m", "a=1,a=2", "a=1,"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_listener_has_an_address_a_host_name_or_is_off() {
        let listener = |text: &str| text.parse::<OrOff<Address>>();
        assert_eq!(listener("off").unwrap(), OrOff(None));
        for text in ["127.0.0.1:0", "[::1]:9000"] {
            assert_eq!(listener(text).unwrap().0.unwrap().0.to_string(), text);
        }
        assert!(
            "localhost:7655"
                .parse::<Address>()
                .unwrap()
                .0
                .ip()
                .is_loopback()
        );
        for wrong in [
            "7071",
            ":7071",
            "localhost",
            "localhost:",
            "localhost:http",
            "::1:7071",
            "http://localhost:7071",
            "a b:1",
            "127.0.0.1:70000",
            "",
        ] {
            let error = listener(wrong).unwrap_err();
            assert!(
                error.ends_with("every IPv4 address; `off` disables it"),
                "{wrong}: {error}"
            );
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(
                error.ends_with(
                    "localhost:7070, [::1]:7070, or 0.0.0.0:7070 for every IPv4 address"
                ),
                "{wrong}: {error}"
            );
        }
        let error = listener("no-such-host.invalid:7071").unwrap_err();
        assert!(
            error.starts_with("the host name `no-such-host.invalid` has no address"),
            "{error}"
        );
    }
}
