//! The readable form as JSON: what `--configs` takes, and what reports in JSON give back.

use std::{fs, path::Path};

use hlorank_client::v1;
use hlorank_graph::{ConfigurationError, Configurations, Graph, LayoutBatch, Task, TileBatch};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::cli::{error::CommandError, input::FILE_LIMITS};

/// One configuration of either kind.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ConfigurationForm {
    /// Of a module.
    Layout(LayoutForm),
    /// Of a kernel.
    Tile(TileForm),
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayoutForm {
    #[serde(default)]
    nodes: Vec<NodeForm>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NodeForm {
    node: u32,
    #[serde(default)]
    tensors: Vec<TensorForm>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TensorForm {
    #[serde(default)]
    minor_to_major: Vec<i32>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TileForm {
    #[serde(default, rename = "kernel_bounds")]
    kernel: Vec<i64>,
    #[serde(default, rename = "output_bounds")]
    output: Vec<i64>,
    #[serde(default, rename = "input_bounds")]
    input: Vec<i64>,
}

/// Reads a JSON list of configurations of a graph.
pub(crate) fn read(path: &Path, graph: &Graph) -> Result<Configurations, CommandError> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path);
    let text = text.map_err(|source| CommandError::ConfigurationFile { path: name.clone(), source })?;
    let configurations = match graph.task() {
        Task::Layout => layouts(&parse(&name, &text)?, graph),
        Task::Tile => tiles(&parse(&name, &text)?),
    };
    configurations.map_err(|source| CommandError::Configuration { path: name, source })
}

fn parse<T: DeserializeOwned>(path: &str, text: &str) -> Result<Vec<T>, CommandError> {
    serde_json::from_str(text)
        .map_err(|source| CommandError::ConfigurationJson { path: path.to_owned(), source })
}

fn layouts(forms: &[LayoutForm], graph: &Graph) -> Result<Configurations, ConfigurationError> {
    let message = v1::LayoutConfigs { configs: forms.iter().map(v1::LayoutConfig::from).collect() };
    Ok(Configurations::Layout(LayoutBatch::from_readable(&message, graph.configurable(), &FILE_LIMITS)?))
}

fn tiles(forms: &[TileForm]) -> Result<Configurations, ConfigurationError> {
    let message = v1::TileConfigs { configs: forms.iter().map(v1::TileConfig::from).collect() };
    Ok(Configurations::Tile(TileBatch::from_readable(&message, &FILE_LIMITS)?))
}

impl ConfigurationForm {
    /// One of a batch; `configurable` gives the node of each slot of a layout.
    pub(crate) fn of(configurations: &Configurations, configurable: &[u32], config: usize) -> Self {
        match configurations {
            Configurations::Layout(batch) => Self::Layout(LayoutForm::of(batch, configurable, config)),
            Configurations::Tile(batch) => Self::Tile(TileForm::of(batch, config)),
        }
    }
}

impl LayoutForm {
    fn of(batch: &LayoutBatch, configurable: &[u32], config: usize) -> Self {
        let tensor = |minor_to_major| TensorForm { minor_to_major };
        let node = |(slot, &node): (usize, &u32)| NodeForm {
            node,
            tensors: batch.entry(config, slot).tensors().into_iter().map(tensor).collect(),
        };
        let nodes = configurable.iter().enumerate().map(node);
        Self { nodes: nodes.filter(|node| !node.tensors.is_empty()).collect() }
    }
}

impl TileForm {
    fn of(batch: &TileBatch, config: usize) -> Self {
        let tile = batch.get(config);
        Self {
            kernel: tile.kernel_bounds.to_vec(),
            output: tile.output_bounds.to_vec(),
            input: tile.input_bounds.to_vec(),
        }
    }
}

impl From<&LayoutForm> for v1::LayoutConfig {
    fn from(form: &LayoutForm) -> Self {
        let tensor = |tensor: &TensorForm| v1::TensorLayout { minor_to_major: tensor.minor_to_major.clone() };
        let node = |form: &NodeForm| v1::NodeLayout {
            node: form.node,
            tensors: form.tensors.iter().map(tensor).collect(),
        };
        Self { nodes: form.nodes.iter().map(node).collect() }
    }
}

impl From<&TileForm> for v1::TileConfig {
    fn from(form: &TileForm) -> Self {
        Self {
            kernel_bounds: form.kernel.clone(),
            output_bounds: form.output.clone(),
            input_bounds: form.input.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{FEATURES, GraphArrays, Limits, Pad};

    use super::*;

    fn graph(configurable: Vec<u32>) -> Graph {
        let features = vec![0.0; 3 * FEATURES];
        let arrays = GraphArrays::from_features(vec![63; 3], features, vec![], Pad::Zero, &Limits::default());
        Graph::new(Task::Layout, arrays.unwrap(), configurable).unwrap()
    }

    fn refusal<T: DeserializeOwned>(text: &str) -> String {
        parse::<T>("configs.json", text).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_layout_comes_back_as_it_was_written() {
        let text = r#"[{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]},{}]"#;
        let batch = layouts(&parse::<LayoutForm>("configs.json", text).unwrap(), &graph(vec![0, 2]));
        let batch = batch.unwrap();
        let form = |config| serde_json::to_string(&ConfigurationForm::of(&batch, &[0, 2], config)).unwrap();
        assert_eq!(form(0), r#"{"nodes":[{"node":2,"tensors":[{"minor_to_major":[1,0]}]}]}"#);
        assert_eq!(form(1), r#"{"nodes":[]}"#);
    }

    #[test]
    fn missing_bounds_are_none() {
        let forms: Vec<TileForm> = parse("configs.json", r#"[{"output_bounds":[8,128]}]"#).unwrap();
        let batch = tiles(&forms).unwrap();
        let form = serde_json::to_string(&ConfigurationForm::of(&batch, &[], 0)).unwrap();
        assert_eq!(form, r#"{"kernel_bounds":[],"output_bounds":[8,128],"input_bounds":[]}"#);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place() {
        let refused = refusal::<LayoutForm>("[\n{\"nodes\":[{\"node\":1,\"tensor\":[]}]}]");
        assert_eq!(
            refused,
            "configs.json: unknown field `tensor`, expected `node` or `tensors` at line 2 column 28"
        );
        assert!(refusal::<TileForm>(r#"[{"bounds":[1]}]"#).contains("unknown field `bounds`"));
    }
}
