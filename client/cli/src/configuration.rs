//! Configurations as JSON: those of most kinds are messages of the wire format. A new kind is one arm of each `match`.

use std::path::Path;

use hlorank_client::v1::{self, config_batch::Configs};
use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, Graph, LayoutEntry, Limits, NodeFeatureBatch,
    Task, content_name, read_input,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::CommandError;

/// Limits of files. They are generous because users read their own files; the server has limits of its own.
pub(crate) const FILE_LIMITS: Limits = Limits {
    nodes: 1 << 24,
    edges: 1 << 26,
    configs: 1 << 24,
    config_entries: 1 << 31,
};

/// One configuration of any kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ConfigurationForm {
    Layout(v1::LayoutConfig),
    Tile(v1::TileConfig),
    Fusion(v1::FusionConfig),
    FeatureSet(NodeFeatureForm),
}

/// The columns of every node.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeFeatureForm {
    node_features: Vec<Vec<f32>>,
}

/// A JSON list of configurations.
pub(crate) enum Json<'a> {
    /// It is not made to values first, because its errors name the line and the column.
    Text(&'a str),
    Values(Vec<Value>),
}

/// Reads a text file, or standard input if the path is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String, CommandError> {
    let bytes = read_input(path).map_err(|error| CommandError::input(path.display(), error))?;
    String::from_utf8(bytes).map_err(|error| {
        let found = content_name(error.as_bytes());
        CommandError::input(
            path.display(),
            format_args!("this is {found}, expected text in UTF-8"),
        )
    })
}

/// Returns the error of a text that is no JSON list of configurations.
pub(crate) fn not_json(path: &Path, text: &str, error: &serde_json::Error) -> CommandError {
    // The position in another format says nothing.
    if text.trim_start().starts_with(['[', '{']) {
        return CommandError::input(path.display(), error);
    }
    let found = content_name(text.as_bytes());
    CommandError::input(
        path.display(),
        format_args!("this is {found}, expected a JSON list, whose form `--help` shows"),
    )
}

impl Json<'_> {
    /// Converts the list, which is from this file, to configurations of a graph.
    pub(crate) fn read(self, path: &Path, graph: &Graph) -> Result<Configurations, CommandError> {
        // The task of the graph decides which form the JSON must have, so that an error names its
        // keys. It is that of the messages of the wire format, which are checked as the server checks them.
        let slots = graph.configurable();
        let message = match graph.task() {
            Task::Layout => {
                let configs = self.forms(path)?;
                Configs::LayoutConfigs(v1::LayoutConfigs { configs })
            }
            Task::Tile => {
                let configs = self.forms(path)?;
                Configs::TileConfigs(v1::TileConfigs { configs })
            }
            Task::Fusion => {
                let configs = self.forms(path)?;
                Configs::FusionConfigs(v1::FusionConfigs { configs })
            }
            Task::FeatureSet => {
                let columns = node_features(&self.forms(path)?, graph.len());
                let columns = columns.and_then(|read| read.check(graph).map(|()| read));
                return columns.map_err(|source| CommandError::configuration(path, &source));
            }
        };
        let batch = EncodedBatch::try_from(&message);
        let configurations = batch.and_then(|batch| batch.read(graph.task(), slots, &FILE_LIMITS));
        let checked = configurations.and_then(|read| read.check(graph).map(|()| read));
        checked.map_err(|source| CommandError::configuration(path, &source))
    }

    fn forms<T: DeserializeOwned>(self, path: &Path) -> Result<Vec<T>, CommandError> {
        match self {
            Self::Text(text) => {
                serde_json::from_str(text).map_err(|error| not_json(path, text, &error))
            }
            Self::Values(values) => serde_json::from_value(Value::Array(values))
                .map_err(|error| CommandError::input(path.display(), error)),
        }
    }
}

/// Converts columns of a graph of this many nodes. All nodes have as many columns as the first.
fn node_features(
    forms: &[NodeFeatureForm],
    nodes: usize,
) -> Result<Configurations, ConfigurationError> {
    let first = forms.first().and_then(|form| form.node_features.first());
    let columns = first.map_or(0, Vec::len);
    let check = |what: &dyn Fn() -> String, found, expected| {
        if found == expected {
            return Ok(());
        }
        Err(ConfigurationError::WrongCount {
            what: what(),
            found,
            expected,
        })
    };
    let mut values = Vec::new();
    for (config, NodeFeatureForm { node_features }) in forms.iter().enumerate() {
        // Values are joined without borders of rows, so a row of another length would shift the rest.
        let what = || format!("configuration {config} (in nodes)");
        check(&what, node_features.len(), nodes)?;
        for (node, row) in node_features.iter().enumerate() {
            let what = || format!("configuration {config}, node {node}");
            check(&what, row.len(), columns)?;
            values.extend_from_slice(row);
        }
    }
    let batch = NodeFeatureBatch::from_values([nodes, columns], &values, &FILE_LIMITS)?;
    Ok(Configurations::FeatureSet(batch))
}

impl ConfigurationForm {
    /// Returns one configuration. `slots` lists the node of each slot.
    pub(crate) fn new(configurations: &Configurations, slots: &[u32], config: usize) -> Self {
        match configurations {
            Configurations::Layout(batch) => {
                let tensor = |minor_to_major| v1::TensorLayout { minor_to_major };
                let node = |(slot, &node): (usize, &u32)| {
                    let tensors = batch.entry(config, slot).tensors();
                    let tensors: Vec<_> = tensors.into_iter().map(tensor).collect();
                    // A node without tensors is left to the compiler, as a missing node is.
                    (!tensors.is_empty()).then_some(v1::NodeLayout { node, tensors })
                };
                let nodes = slots.iter().enumerate().filter_map(node).collect();
                Self::Layout(v1::LayoutConfig { nodes })
            }
            Configurations::Tile(batch) => {
                let tile = batch.get(config);
                let tile = tile.view();
                Self::Tile(v1::TileConfig {
                    kernel_bounds: tile.kernel_bounds.to_vec(),
                    output_bounds: tile.output_bounds.to_vec(),
                    input_bounds: tile.input_bounds.to_vec(),
                })
            }
            Configurations::Fusion(batch) => {
                let fused_nodes = batch.fused_slots(config).map(|slot| slots[slot]).collect();
                Self::Fusion(v1::FusionConfig { fused_nodes })
            }
            Configurations::FeatureSet(batch) => {
                let values: Vec<f32> = batch.values(config).collect();
                let rows = values.chunks(batch.columns()).map(<[f32]>::to_vec);
                Self::FeatureSet(NodeFeatureForm {
                    node_features: rows.collect(),
                })
            }
        }
    }
}

/// Returns the number of the compiler's default, if the configuration itself shows that it is the default.
pub(crate) fn default_number(configurations: &Configurations) -> Option<usize> {
    match configurations {
        Configurations::Layout(batch) => {
            let mut all = 0..batch.len();
            all.find(|&config| {
                let mut slots = 0..batch.slots();
                slots.all(|slot| batch.entry(config, slot) == LayoutEntry::DEFAULT)
            })
        }
        // Nothing in a tile or in columns marks the default. The default of a program fuses some of
        // its nodes, and only the compiler knows which.
        Configurations::Tile(_) | Configurations::Fusion(_) | Configurations::FeatureSet(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(configurations: &Configurations, slots: &[u32], config: usize) -> String {
        serde_json::to_string(&ConfigurationForm::new(configurations, slots, config)).unwrap()
    }

    #[test]
    fn a_layout_is_written_as_it_was_read() {
        let text = r#"[{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]},{}]"#;
        let configs = serde_json::from_str(text).unwrap();
        let message = Configs::LayoutConfigs(v1::LayoutConfigs { configs });
        let batch = EncodedBatch::try_from(&message).unwrap();
        let batch = batch.read(Task::Layout, &[0, 2], &FILE_LIMITS).unwrap();
        let first = r#"{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]}"#;
        assert_eq!(written(&batch, &[0, 2], 0), first);
        assert_eq!(written(&batch, &[0, 2], 1), r#"{"nodes":[]}"#);
        assert_eq!(default_number(&batch), Some(1));
    }

    #[test]
    fn missing_bounds_are_empty() {
        let tile: v1::TileConfig = serde_json::from_str(r#"{"output_bounds":[8,128]}"#).unwrap();
        assert_eq!(tile.output_bounds, [8, 128]);
        assert!(tile.kernel_bounds.is_empty() && tile.input_bounds.is_empty());
    }

    #[test]
    fn columns_are_written_as_they_were_read() {
        let read = |text: &str| {
            let forms: Vec<NodeFeatureForm> = serde_json::from_str(text).unwrap();
            node_features(&forms, 2)
        };
        let text = r#"{"node_features":[[1.5,2.0],[3.0,4.0]]}"#;
        let batch = read(&format!("[{text}]")).unwrap();
        assert_eq!(written(&batch, &[], 0), text);
        let refused = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refused(r#"[{"node_features":[[1],[3,4]]}]"#),
            "configuration 0, node 1 has 2 entries, expected 1"
        );
        let short = refused(r#"[{"node_features":[[1]]}]"#);
        assert!(short.contains("configuration 0 (in nodes)"), "{short}");
    }
}
