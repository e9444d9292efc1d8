use hlorank_graph::{FeatureSet, Scope, Task};
use serde::Deserialize;

use crate::model::{
    interface::{Element::Float32, Element::Int64, Interface, config_outlet, outlet},
    manifest_error::{ManifestError, check_field},
};

/// Settings of a whole-graph model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeGraphSettings {
    /// Number of configurations that the model takes at a time; at least 1.
    pub chunk_configs: usize,
    /// Whether a score depends on the other configurations of its chunk.
    pub batch_dependent: bool,
}

/// The fields of a whole-graph model as a manifest holds them.
#[derive(Deserialize)]
pub(in crate::model) struct WrittenWholeGraph {
    #[serde(default)]
    chunk_configs: usize,
    batch_dependent: bool,
    /// Only segment models have the following two.
    #[serde(default)]
    embedding_size: usize,
    #[serde(default)]
    buckets: Vec<usize>,
}

/// Name of the ONNX file.
pub(in crate::model) const MODEL: &str = "model.onnx";

impl WrittenWholeGraph {
    pub(in crate::model) fn checked(self) -> Result<WholeGraphSettings, ManifestError> {
        let Self { chunk_configs, batch_dependent, embedding_size, buckets } = self;
        let none = "none for a whole-graph model";
        check_field(chunk_configs > 0, "chunk_configs", &chunk_configs, "1 or more")?;
        check_field(embedding_size == 0, "embedding_size", &embedding_size, none)?;
        check_field(buckets.is_empty(), "buckets", &format!("{buckets:?}"), none)?;
        Ok(WholeGraphSettings { chunk_configs, batch_dependent })
    }
}

impl WholeGraphSettings {
    /// The ONNX file of such a model, with its interface.
    pub(in crate::model) fn files(task: Task, features: &FeatureSet) -> Vec<(&'static str, Interface)> {
        let mut inputs = vec![
            outlet("opcode", Int64, &[None]),
            outlet("features", Float32, &[None, Some(features.node_features())]),
            outlet("edges", Int64, &[Some(2), None]),
            config_outlet(task),
        ];
        if task.kind().scope == Scope::Nodes {
            inputs.push(outlet("configurable", Int64, &[None]));
        }
        vec![(MODEL, Interface::new(inputs, outlet("score", Float32, &[None])))]
    }
}
