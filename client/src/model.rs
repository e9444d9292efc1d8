use std::{fmt, str::FromStr};

use hlorank_proto::v1::ModelSelector;

/// Names a model: `NAME`, or `NAME@VERSION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelReference {
    /// Name in the registry.
    pub name: String,
    /// A version of it; `None` for the one that serves.
    pub version: Option<u64>,
}

/// Text that names no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a model is given as NAME or NAME@VERSION, versions counting from 1")]
pub struct ParseModelReferenceError;

impl FromStr for ModelReference {
    type Err = ParseModelReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('@') {
            None => (text, None),
            Some((name, version)) => (name, Some(version.parse().map_err(|_| ParseModelReferenceError)?)),
        };
        if name.is_empty() || version == Some(0) {
            return Err(ParseModelReferenceError);
        }
        Ok(Self { name: name.to_owned(), version })
    }
}

impl fmt::Display for ModelReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            None => write!(formatter, "{}", self.name),
            Some(version) => write!(formatter, "{}@{version}", self.name),
        }
    }
}

impl From<&ModelReference> for ModelSelector {
    fn from(reference: &ModelReference) -> Self {
        Self { name: reference.name.clone(), version: reference.version.unwrap_or(0) }
    }
}

impl From<ModelSelector> for ModelReference {
    fn from(selector: ModelSelector) -> Self {
        Self { name: selector.name, version: Some(selector.version).filter(|version| *version != 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_printed_as_it_is_read() {
        for text in ["tile-xla-cpu", "layout-xla-cpu@3"] {
            assert_eq!(text.parse::<ModelReference>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_names_no_version_is_refused() {
        for text in ["", "@1", "name@", "name@x", "name@0"] {
            assert_eq!(text.parse::<ModelReference>(), Err(ParseModelReferenceError));
        }
    }
}
