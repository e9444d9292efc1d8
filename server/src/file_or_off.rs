use std::{convert::Infallible, path::PathBuf, str::FromStr};

/// A path, or `off`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOrOff(pub Option<PathBuf>);

impl FromStr for FileOrOff {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self((text != "off").then(|| PathBuf::from(text))))
    }
}
