use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

/// A path, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrOff(pub Option<PathBuf>);

impl FromStr for FileOrOff {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self((text != "off").then(|| PathBuf::from(text))))
    }
}

impl fmt::Display for FileOrOff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(path) => path.display().fmt(formatter),
            None => formatter.write_str("off"),
        }
    }
}
