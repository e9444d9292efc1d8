use hlorank_graph::{Scope, Task};
use serde::Deserialize;
use serde_json::Value;

use super::permutations::{Permutations, WrittenPermutations};
use crate::model::{
    ModelFeatures,
    interface::{Element::Float32, Element::Int64, Interface, config_outlet, outlet},
    manifest_error::{ManifestError, check_absent, check_field, require_field},
};

/// Settings of a whole-graph model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeGraphSettings {
    /// Number of configurations that the model takes at a time; at least 1.
    pub chunk_configs: usize,
    /// Whether a score depends on the other configurations of its chunk.
    pub batch_dependent: bool,
    /// The nodes that the model takes.
    pub nodes: ModelNodes,
    /// How a batch is cut into chunks.
    pub chunking: Chunking,
    /// The orders in which a batch of several chunks is scored. Without them, that is once in the order sent.
    pub permutations: Option<Permutations>,
}

/// The nodes of a graph that a whole-graph model takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelNodes {
    /// `all`: every node.
    #[default]
    All,
    /// `pruned`: the nodes that pruning keeps.
    Pruned,
}

/// How a batch is cut into chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chunking {
    /// `full`: chunks of `chunk_configs` configurations, the last one shorter.
    #[default]
    Full,
    /// `even`: as few chunks, of sizes that differ by one at most, the larger ones first.
    Even,
}

/// The fields of a whole-graph model as a manifest holds them.
#[derive(Deserialize)]
pub(in crate::model) struct WrittenWholeGraph {
    #[serde(default)]
    chunk_configs: usize,
    batch_dependent: bool,
    nodes: Option<String>,
    chunking: Option<String>,
    permutations: Option<WrittenPermutations>,
    /// Only segment models have the following three.
    #[serde(default)]
    embedding_size: usize,
    #[serde(default)]
    buckets: Vec<usize>,
    max_segment_nodes: Option<Value>,
}

/// Name of the ONNX file.
pub(in crate::model) const MODEL: &str = "model.onnx";

impl WrittenWholeGraph {
    pub(in crate::model) fn checked(self, task: Task) -> Result<WholeGraphSettings, ManifestError> {
        self.check_no_segment_fields()?;
        check_field(
            task.kind().scope != Scope::Program,
            "kind",
            &"graph",
            "segment for fusions",
        )?;
        check_field(
            self.chunk_configs > 0,
            "chunk_configs",
            &self.chunk_configs,
            "1 or more",
        )?;
        let batch_dependent = self.batch_dependent;
        let nodes = read_nodes(self.nodes, task)?;
        let chunking = read_chunking(self.chunking, batch_dependent)?;
        let permutations = self
            .permutations
            .map(|written| written.checked(batch_dependent))
            .transpose()?;
        Ok(WholeGraphSettings {
            chunk_configs: self.chunk_configs,
            batch_dependent,
            nodes,
            chunking,
            permutations,
        })
    }

    fn check_no_segment_fields(&self) -> Result<(), ManifestError> {
        let none = "none for a whole-graph model";
        let buckets = format!("{:?}", self.buckets);
        check_field(
            self.embedding_size == 0,
            "embedding_size",
            &self.embedding_size,
            none,
        )?;
        check_field(self.buckets.is_empty(), "buckets", &buckets, none)?;
        check_absent(self.max_segment_nodes.as_ref(), "max_segment_nodes", none)
    }
}

fn read_nodes(written: Option<String>, task: Task) -> Result<ModelNodes, ManifestError> {
    let Some(written) = written else {
        return Ok(ModelNodes::default());
    };
    let nodes = match (written.as_str(), task.kind().scope) {
        ("all", _) => Some(ModelNodes::All),
        ("pruned", Scope::Nodes) => Some(ModelNodes::Pruned),
        _ => None,
    };
    require_field(nodes, "nodes", &written, "all, or pruned for layouts")
}

fn read_chunking(
    written: Option<String>,
    batch_dependent: bool,
) -> Result<Chunking, ManifestError> {
    let Some(written) = written else {
        return Ok(Chunking::default());
    };
    let chunking = match written.as_str() {
        "full" => Some(Chunking::Full),
        // The sizes of chunks matter only if a score depends on the rest of its chunk.
        "even" if batch_dependent => Some(Chunking::Even),
        _ => None,
    };
    require_field(
        chunking,
        "chunking",
        &written,
        "full, or even with `batch_dependent`",
    )
}

impl WholeGraphSettings {
    /// Whether a score depends on the number of configurations of its batch or on those outside its chunk, so that a part
    /// of a batch has other scores than the whole.
    #[must_use]
    pub fn needs_whole_batch(&self) -> bool {
        self.chunking == Chunking::Even || self.permutations.is_some()
    }

    /// The ONNX file of such a model, with its interface.
    pub(in crate::model) fn files(
        task: Task,
        features: &ModelFeatures,
    ) -> Vec<(&'static str, Interface)> {
        let mut inputs = vec![
            outlet("features", Float32, &[None, Some(features.node_features())]),
            outlet("edges", Int64, &[Some(2), None]),
        ];
        inputs.extend(config_outlet(task, features));
        if features.named().is_none() {
            inputs.push(outlet("opcode", Int64, &[None]));
        }
        if task.kind().scope == Scope::Nodes {
            inputs.push(outlet("configurable", Int64, &[None]));
        }
        let score = outlet("score", Float32, &[None]);
        vec![(MODEL, Interface::new(inputs, score))]
    }
}
