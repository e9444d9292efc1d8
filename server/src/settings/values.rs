//! Values of settings that clap has no type for.

use std::{
    collections::BTreeMap,
    io,
    net::{SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    str::FromStr,
};

/// Models by task or feature set: `TASK=MODEL,SET=MODEL`, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultModels(pub Vec<(String, String)>);

/// The text is no list of tasks or feature sets and their models.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "expected TASK=MODEL or SET=MODEL, separated by commas and each task and set once, or `none`"
)]
pub struct NoDefaultModels;

/// Address and port of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

/// Address and port of a listener, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOrOff(pub Option<SocketAddr>);

/// Why a text is no address of a listener.
#[derive(Debug, thiserror::Error)]
pub enum NoAddress {
    /// The text does not have the form of an address with a port.
    #[error(
        "expected an address or a host name with a port, such as 127.0.0.1:{0}, localhost:{0} or [::1]:{0}{1}"
    )]
    Form(u16, &'static str),
    /// The host name has no address.
    #[error("the host name `{host}` has no address: {source}")]
    Host {
        /// The name.
        host: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        read_address(text, || {
            NoAddress::Form(7070, "; 0.0.0.0:7070 is every IPv4 address")
        })
        .map(Self)
    }
}

impl FromStr for AddressOrOff {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        if text == "off" {
            return Ok(Self(None));
        }
        read_address(text, || NoAddress::Form(7071, ", or `off`"))
            .map(|address| Self(Some(address)))
    }
}

fn read_address(text: &str, no_form: impl Fn() -> NoAddress) -> Result<SocketAddr, NoAddress> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(&no_form)?;
    let port: u16 = port.parse().map_err(|_| no_form())?;
    let is_name =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    if host.is_empty() || !host.chars().all(is_name) {
        return Err(no_form());
    }
    look_up(host, port).map_err(|source| NoAddress::Host {
        host: host.to_owned(),
        source,
    })
}

/// Returns an address of a host name: the first IPv4 address, because clients try that of `localhost`, or else the first.
fn look_up(host: &str, port: u16) -> io::Result<SocketAddr> {
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let first_v4 = found.iter().find(|address| address.is_ipv4());
    let address = first_v4.or(found.first()).copied();
    address.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

impl FromStr for DefaultModels {
    type Err = NoDefaultModels;

    fn from_str(text: &str) -> Result<Self, NoDefaultModels> {
        if text == "none" {
            return Ok(Self::default());
        }
        let mut models = BTreeMap::new();
        for pair in text.split(',') {
            // A set may have `=` in its name, a folder of models has not.
            let (set, model) = pair.rsplit_once('=').ok_or(NoDefaultModels)?;
            let is_new = models
                .insert(set.trim().to_owned(), model.trim().to_owned())
                .is_none();
            if set.trim().is_empty() || model.trim().is_empty() || !is_new {
                return Err(NoDefaultModels);
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

pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0);
    factor.ok_or_else(|| "expected a factor above 0, such as 3 or 1.5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let listener = |text: &str| text.parse::<AddressOrOff>();
        assert_eq!(listener("off").unwrap(), AddressOrOff(None));
        for text in ["127.0.0.1:0", "[::1]:9000"] {
            assert_eq!(listener(text).unwrap().0.unwrap().to_string(), text);
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
            let error = listener(wrong).unwrap_err().to_string();
            assert!(
                error.contains("localhost:7071 or [::1]:7071, or `off`"),
                "{wrong}: {error}"
            );
            let error = wrong.parse::<Address>().unwrap_err().to_string();
            assert!(
                error.ends_with("0.0.0.0:7070 is every IPv4 address"),
                "{wrong}: {error}"
            );
        }
        let error = listener("no-such-host.invalid:7071")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("the host name `no-such-host.invalid` has no address"),
            "{error}"
        );
    }
}
