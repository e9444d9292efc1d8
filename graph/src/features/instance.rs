use hlorank_proto::v1;

use super::named_set::is_set_name;

/// Features of an instance, such as the sizes and the type of its operands, by ascending name. They say how instances differ, so that
/// measurements of some say what to expect of others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InstanceFeatures(Vec<InstanceFeature>);

/// A feature of an instance.
#[derive(Clone, Debug, PartialEq)]
pub struct InstanceFeature {
    name: String,
    value: InstanceValue,
}

/// The value of a feature.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceValue {
    /// A finite number.
    Number(f64),
    /// One of few texts, such as a type.
    Text(String),
}

/// What is wrong with [`InstanceFeatures`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstanceFeatureError {
    /// More features than are read.
    #[error("{found} features, at most {MAX_FEATURES} are possible")]
    TooMany {
        /// Number of features.
        found: usize,
    },
    /// A name that is empty, too long or has other characters.
    #[error(
        "the name of feature {number} is not 1 to 128 printable ASCII characters without `\"` and `\\`"
    )]
    Name {
        /// The number of the feature, from 0.
        number: usize,
    },
    /// Two features of one name.
    #[error("the feature `{name}` occurs twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// A feature without a value.
    #[error("the feature `{name}` has neither a number nor a text")]
    NoValue {
        /// The name.
        name: String,
    },
    /// A number that is not finite.
    #[error("the feature `{name}` is not finite")]
    NotFinite {
        /// The name.
        name: String,
    },
    /// A text that is too long.
    #[error("the feature `{name}` has {found} bytes, at most {MAX_TEXT} are possible")]
    LongText {
        /// The name.
        name: String,
        /// Number of bytes.
        found: usize,
    },
    /// Features of a graph whose nodes have columns of their own to say how it differs.
    #[error("the graph has {nodes} nodes, and only a graph of one node is an instance")]
    SeveralNodes {
        /// Number of nodes.
        nodes: usize,
    },
}

/// Maximum number of features of an instance, since learning looks at their pairs.
const MAX_FEATURES: usize = 32;

/// Maximum number of bytes of a text.
const MAX_TEXT: usize = 64;

impl InstanceFeatures {
    /// Reads and checks features that were sent.
    pub(crate) fn of_message(
        features: &[v1::InstanceFeature],
    ) -> Result<Self, InstanceFeatureError> {
        let found = features.len();
        if found > MAX_FEATURES {
            return Err(InstanceFeatureError::TooMany { found });
        }
        let read = features.iter().enumerate().map(InstanceFeature::of_message);
        let mut all = read.collect::<Result<Vec<_>, _>>()?;
        all.sort_by(|one, other| one.name.cmp(&other.name));
        match all.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(InstanceFeatureError::Twice {
                name: pair[0].name.clone(),
            }),
            None => Ok(Self(all)),
        }
    }

    pub(crate) fn to_message(&self) -> Vec<v1::InstanceFeature> {
        use v1::instance_feature::Value;

        let message = |feature: &InstanceFeature| v1::InstanceFeature {
            name: feature.name.clone(),
            value: Some(match &feature.value {
                InstanceValue::Number(number) => Value::Number(*number),
                InstanceValue::Text(text) => Value::Text(text.clone()),
            }),
        };
        self.0.iter().map(message).collect()
    }

    /// Returns the features by ascending name.
    pub fn iter(&self) -> impl Iterator<Item = &InstanceFeature> {
        self.0.iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes that names and texts take.
    pub(crate) fn bytes(&self) -> usize {
        let text = |feature: &InstanceFeature| match &feature.value {
            InstanceValue::Number(_) => 0,
            InstanceValue::Text(text) => text.len(),
        };
        let bytes = |feature: &InstanceFeature| {
            size_of::<InstanceFeature>() + feature.name.len() + text(feature)
        };
        self.0.iter().map(bytes).sum()
    }
}

impl InstanceFeature {
    fn of_message(
        (number, feature): (usize, &v1::InstanceFeature),
    ) -> Result<Self, InstanceFeatureError> {
        use v1::instance_feature::Value;

        if !is_set_name(&feature.name) {
            return Err(InstanceFeatureError::Name { number });
        }
        let name = feature.name.clone();
        let value = match &feature.value {
            None => return Err(InstanceFeatureError::NoValue { name }),
            Some(Value::Number(number)) if !number.is_finite() => {
                return Err(InstanceFeatureError::NotFinite { name });
            }
            // -0 + 0 is 0, so that both zeros have one hash.
            Some(Value::Number(number)) => InstanceValue::Number(number + 0.0),
            Some(Value::Text(text)) if text.len() > MAX_TEXT => {
                let found = text.len();
                return Err(InstanceFeatureError::LongText { name, found });
            }
            Some(Value::Text(text)) => InstanceValue::Text(text.clone()),
        };
        Ok(Self { name, value })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value.
    pub fn value(&self) -> &InstanceValue {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use v1::instance_feature::Value;

    use super::*;

    fn feature(name: &str, value: Value) -> v1::InstanceFeature {
        v1::InstanceFeature {
            name: name.to_owned(),
            value: Some(value),
        }
    }

    #[test]
    fn wrong_features_are_refused() {
        let wrong = |features: &[v1::InstanceFeature]| {
            InstanceFeatures::of_message(features)
                .unwrap_err()
                .to_string()
        };
        let number = Value::Number(1.0);
        let many: Vec<_> = (0..33)
            .map(|each| feature(&each.to_string(), number.clone()))
            .collect();
        assert_eq!(wrong(&many), "33 features, at most 32 are possible");
        assert!(InstanceFeatures::of_message(&many[1..]).is_ok());
        let [longest, long] = [64, 65].map(|length| feature("m", Value::Text("x".repeat(length))));
        assert!(InstanceFeatures::of_message(&[longest]).is_ok());
        assert_eq!(
            wrong(&[long]),
            "the feature `m` has 65 bytes, at most 64 are possible"
        );
        assert!(wrong(&[feature("", number)]).contains("the name of feature 0"));
    }
}
