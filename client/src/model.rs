use std::{fmt, str::FromStr};

use hlorank_proto::v1::ModelSelector;

/// A model and one of its versions: `NAME`, `NAME@VERSION`, `NAME@stable` or `NAME@canary`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelReference {
    /// Name in the registry; empty only in an answer without a model.
    pub name: String,
    /// Version of the model.
    pub version: ModelVersion,
}

/// One of the versions of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelVersion {
    /// The version that serves the graph: the canary if the graph is assigned to it, otherwise the stable version.
    Serving,
    /// The stable version.
    Stable,
    /// The canary.
    Canary,
    /// The version of this number, from 1.
    Number(u64),
}

/// The error of a text that names no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a model must be NAME, NAME@VERSION, NAME@stable or NAME@canary, with a version of at least 1"
)]
pub struct ParseModelReferenceError;

impl FromStr for ModelReference {
    type Err = ParseModelReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, version) = match text.split_once('@') {
            None => (text, ModelVersion::Serving),
            Some((name, "stable")) => (name, ModelVersion::Stable),
            Some((name, "canary")) => (name, ModelVersion::Canary),
            Some((name, number)) => {
                let number = number.parse().ok().filter(|number| *number > 0);
                (
                    name,
                    ModelVersion::Number(number.ok_or(ParseModelReferenceError)?),
                )
            }
        };
        if name.is_empty() {
            return Err(ParseModelReferenceError);
        }
        Ok(Self {
            name: name.to_owned(),
            version,
        })
    }
}

impl fmt::Display for ModelReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        if name.is_empty() {
            return write!(formatter, "no model");
        }
        match self.version {
            ModelVersion::Serving => write!(formatter, "{name}"),
            ModelVersion::Stable => write!(formatter, "{name}@stable"),
            ModelVersion::Canary => write!(formatter, "{name}@canary"),
            ModelVersion::Number(number) => write!(formatter, "{name}@{number}"),
        }
    }
}

impl From<&ModelReference> for ModelSelector {
    fn from(reference: &ModelReference) -> Self {
        let (version, label) = match reference.version {
            ModelVersion::Serving => (0, ""),
            ModelVersion::Stable => (0, "stable"),
            ModelVersion::Canary => (0, "canary"),
            ModelVersion::Number(number) => (number, ""),
        };
        Self {
            name: reference.name.clone(),
            version,
            label: label.to_owned(),
            target: String::new(),
        }
    }
}

/// Returns the selector of a request: of a model if one is named, and for a target unless that is empty.
pub(crate) fn selector(model: Option<&ModelReference>, target: &str) -> Option<ModelSelector> {
    if model.is_none() && target.is_empty() {
        return None;
    }
    Some(ModelSelector {
        target: target.to_owned(),
        ..model.map(ModelSelector::from).unwrap_or_default()
    })
}

/// Converts the selector of an answer, which has a version and no label.
impl From<ModelSelector> for ModelReference {
    fn from(selector: ModelSelector) -> Self {
        let version = match selector.version {
            0 => ModelVersion::Serving,
            number => ModelVersion::Number(number),
        };
        Self {
            name: selector.name,
            version,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_printed_as_it_is_read() {
        for text in ["tile-iree-cpu", "layout-xla-cpu@3", "a@stable", "b@canary"] {
            assert_eq!(text.parse::<ModelReference>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_text_that_names_no_version_is_rejected() {
        for text in ["", "@1", "@stable", "name@", "name@x", "name@0"] {
            assert_eq!(
                text.parse::<ModelReference>(),
                Err(ParseModelReferenceError)
            );
        }
    }
}
