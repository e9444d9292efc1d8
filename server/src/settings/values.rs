//! Values of settings that clap has no type for.

use std::{collections::BTreeMap, fmt, io, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

/// Models by feature set: `SET=MODEL,SET=MODEL`, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureSetModels(pub Vec<(String, String)>);

/// The text is no list of feature sets and models.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected SET=MODEL, separated by commas and each set once, or `none`")]
pub struct NoFeatureSetModels;

/// Address and port of a listener, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressOrOff(pub Option<SocketAddr>);

/// The text is neither an address with a port nor `off`.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected an address with a port, such as 127.0.0.1:7071, or `off`")]
pub struct NoAddress;

impl FromStr for AddressOrOff {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        match text {
            "off" => Ok(Self(None)),
            address => address.parse().map(|address| Self(Some(address))).map_err(|_| NoAddress),
        }
    }
}

impl FromStr for FeatureSetModels {
    type Err = NoFeatureSetModels;

    fn from_str(text: &str) -> Result<Self, NoFeatureSetModels> {
        if text == "none" {
            return Ok(Self::default());
        }
        let mut models = BTreeMap::new();
        for pair in text.split(',') {
            // A set may have `=` in its name, a folder of models has not.
            let (set, model) = pair.rsplit_once('=').ok_or(NoFeatureSetModels)?;
            let is_new = models.insert(set.trim().to_owned(), model.trim().to_owned()).is_none();
            if set.trim().is_empty() || model.trim().is_empty() || !is_new {
                return Err(NoFeatureSetModels);
            }
        }
        Ok(Self(models.into_iter().collect()))
    }
}

impl fmt::Display for AddressOrOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}

/// Returns the absolute path of a file in a folder. The loader of libraries looks for a name without a folder.
pub(super) fn absolute_or_name(path: PathBuf) -> io::Result<PathBuf> {
    if path.components().count() > 1 { std::path::absolute(path) } else { Ok(path) }
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, such as 30 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

pub(super) fn positive_seconds(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        Duration::ZERO => Err("expected more than 0 seconds".to_owned()),
        seconds => Ok(seconds),
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
    fn models_of_feature_sets_are_a_list() {
        let read = |text: &str| text.parse().map(|FeatureSetModels(models)| models);
        let pair = |set: &str, model: &str| (set.to_owned(), model.to_owned());
        assert_eq!(read("b=2,a=b=1").unwrap(), [pair("a=b", "1"), pair("b", "2")]);
        assert!(read("none").unwrap().is_empty());
        for wrong in ["", "a", "a=", "=m", "a=1,a=2", "a=1,"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_listener_has_an_address_or_is_off() {
        let listener = |text: &str| text.parse::<AddressOrOff>();
        for text in ["off", "127.0.0.1:0", "[::1]:9000"] {
            assert_eq!(listener(text).unwrap().to_string(), text);
        }
        assert!(listener("7071").unwrap_err().to_string().contains("or `off`"));
    }
}
