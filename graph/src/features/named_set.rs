use crate::Digest;

/// A set of features that is defined outside this crate: its name, and the names of the columns of a node and of a node in a
/// configuration. The manifest of a model holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFeatureSet {
    name: String,
    node_features: Vec<String>,
    config_features: Vec<String>,
}

/// What is wrong with a [`NamedFeatureSet`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamedSetError {
    /// A name that is empty, too long or has other characters.
    #[error(
        "the name of {what} is not 1 to {MAX_NAME} printable ASCII characters without `\"` and `\\`"
    )]
    Name {
        /// The set, or the column by its list and number.
        what: String,
    },
    /// A list of columns that is too short or too long.
    #[error("{list} has {found} columns, expected {least} to {MAX_COLUMNS}")]
    Columns {
        /// The list.
        list: &'static str,
        /// Minimum number of columns.
        least: usize,
        /// Number of columns.
        found: usize,
    },
    /// Two columns of a list have the same name.
    #[error("{list} has the column `{name}` twice")]
    Twice {
        /// The list.
        list: &'static str,
        /// The name.
        name: String,
    },
}

/// Maximum number of characters of a name.
const MAX_NAME: usize = 128;

/// Maximum number of columns of a node.
const MAX_COLUMNS: usize = 65_536;

impl NamedFeatureSet {
    /// Checks the names. A flat space of parameters has no node columns.
    pub fn new(
        name: String,
        node_features: Vec<String>,
        config_features: Vec<String>,
    ) -> Result<Self, NamedSetError> {
        if !is_set_name(&name) {
            return Err(NamedSetError::Name {
                what: "the feature set".to_owned(),
            });
        }
        check_names("node_features", &node_features, 0)?;
        check_names("config_features", &config_features, 1)?;
        Ok(Self {
            name,
            node_features,
            config_features,
        })
    }

    /// Returns the bytes that the names take.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self.node_features.iter().chain(&self.config_features);
        let columns = columns.map(|name| size_of::<String>() + name.len());
        self.name.len() + columns.sum::<usize>()
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the columns of a node, in order.
    pub fn node_features(&self) -> &[String] {
        &self.node_features
    }

    /// Returns the names of the columns of a node in a configuration, in order.
    pub fn config_features(&self) -> &[String] {
        &self.config_features
    }

    /// Returns the digest: BLAKE3 of the JSON `["name",["node column",…],["configuration column",…]]` without white space.
    pub fn digest(&self) -> Digest {
        // Names need no escapes in JSON, so quotes around them are enough.
        let list = |names: &[String]| {
            let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            names.join(",")
        };
        let nodes = list(&self.node_features);
        let configs = list(&self.config_features);
        let json = format!("[\"{}\",[{nodes}],[{configs}]]", self.name);
        Digest(*blake3::hash(json.as_bytes()).as_bytes())
    }
}

/// Returns whether a text may be the name of a feature set or of a column. Such a name needs no escapes in JSON.
pub(crate) fn is_set_name(name: &str) -> bool {
    let allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'"' && byte != b'\\';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(allowed)
}

fn check_names(list: &'static str, columns: &[String], least: usize) -> Result<(), NamedSetError> {
    let found = columns.len();
    if !(least..=MAX_COLUMNS).contains(&found) {
        return Err(NamedSetError::Columns { list, least, found });
    }
    if let Some(column) = columns.iter().position(|name| !is_set_name(name)) {
        return Err(NamedSetError::Name {
            what: format!("column {column} of {list}"),
        });
    }
    repeated(columns).map_or(Ok(()), |name| {
        let name = name.clone();
        Err(NamedSetError::Twice { list, name })
    })
}

fn repeated(names: &[String]) -> Option<&String> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    // Sorted, equal names are adjacent.
    let pair = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(pair[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, nodes: &[&str], configs: &[&str]) -> Result<NamedFeatureSet, NamedSetError> {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        NamedFeatureSet::new(name.to_owned(), owned(nodes), owned(configs))
    }

    #[test]
    fn the_digest_is_that_of_the_json() {
        let set = set("loops-1", &["depth", "flops"], &["tile"]).unwrap();
        let json = r#"["loops-1",["depth","flops"],["tile"]]"#;
        assert_eq!(
            set.digest(),
            Digest(*blake3::hash(json.as_bytes()).as_bytes())
        );
    }

    #[test]
    fn wrong_names_are_told() {
        for name in ["a\\b", "a\nb", &"x".repeat(129)] {
            assert!(
                matches!(set(name, &["a"], &["b"]), Err(NamedSetError::Name { .. })),
                "{name:?}"
            );
            let column = set("set", &["a", name], &["b"]).unwrap_err();
            assert!(
                column.to_string().contains("column 1 of node_features"),
                "{column}"
            );
        }
        assert!(set(&"x".repeat(128), &["a b"], &["~"]).is_ok());
        let none = NamedSetError::Columns {
            list: "config_features",
            least: 1,
            found: 0,
        };
        assert_eq!(set("set", &["a"], &[]), Err(none));
        // A flat space of parameters.
        assert!(set("set", &[], &["b"]).is_ok());
    }
}
