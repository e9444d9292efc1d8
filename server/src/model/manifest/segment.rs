use std::collections::BTreeMap;

use hlorank_graph::{MAX_SEGMENT_NODES, Scope, Task};
use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    ModelFeatures,
    interface::{
        Element::{Float32, Int64},
        Interface, Outlet, config_outlet, outlet, row_outlets,
    },
    manifest_error::{ManifestError, check_absent, check_field},
};

/// Settings of a segment model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSettings {
    /// Length of an embedding.
    pub embedding_size: usize,
    /// Padded segment sizes in nodes, ascending.
    pub buckets: Vec<usize>,
    /// Maximum number of nodes of a segment.
    pub max_segment_nodes: usize,
    /// Whether the encoder has two parts, of which `segment.onnx` computes what depends on a segment alone.
    pub is_split: bool,
}

/// The fields of a segment model as a manifest holds them.
#[derive(Deserialize)]
pub(in crate::model) struct WrittenSegment {
    #[serde(default)]
    embedding_size: usize,
    #[serde(default)]
    buckets: Vec<usize>,
    max_segment_nodes: Option<usize>,
    batch_dependent: bool,
    /// Only whole-graph models have the following four.
    #[serde(default)]
    chunk_configs: usize,
    nodes: Option<Value>,
    chunking: Option<Value>,
    permutations: Option<Value>,
}

/// Names of the ONNX files.
pub(in crate::model) const SEGMENT: &str = "segment.onnx";
pub(in crate::model) const ENCODER: &str = "encoder.onnx";
pub(in crate::model) const HEAD: &str = "head.onnx";

/// Limits on the nodes of the largest bucket and on the numbers of an embedding, and so on what one run of the encoder
/// takes.
const MAX_BUCKET: usize = 4 * MAX_SEGMENT_NODES;
const MAX_EMBEDDING: usize = 4096;

impl WrittenSegment {
    /// Checks the fields, and looks for `segment.onnx` among the listed files.
    pub(in crate::model) fn checked(
        self,
        task: Task,
        files: &BTreeMap<String, String>,
    ) -> Result<SegmentSettings, ManifestError> {
        self.check_no_whole_graph_fields()?;
        check_field(
            task.kind().scope != Scope::EveryNode,
            "kind",
            &"segment",
            "graph for a feature set",
        )?;
        let max_segment_nodes = self.checked_max_segment_nodes(task)?;
        self.check_embedding_size()?;
        self.check_buckets(max_segment_nodes)?;
        // A row of a fusion has no local configuration: a second part would have nothing to do.
        let is_split = files.contains_key(SEGMENT) && task.kind().scope != Scope::Program;
        Ok(SegmentSettings {
            embedding_size: self.embedding_size,
            buckets: self.buckets,
            max_segment_nodes,
            is_split,
        })
    }

    fn check_embedding_size(&self) -> Result<(), ManifestError> {
        check_field(
            (1..=MAX_EMBEDDING).contains(&self.embedding_size),
            "embedding_size",
            &self.embedding_size,
            &format!("1 to {MAX_EMBEDDING}"),
        )
    }

    fn check_buckets(&self, max_segment_nodes: usize) -> Result<(), ManifestError> {
        let buckets = &self.buckets;
        let ascending = buckets.is_sorted_by(|one, next| one < next) && buckets.first() > Some(&0);
        // The largest bucket holds every segment, so that there is a padded size for each.
        let largest = buckets
            .last()
            .is_some_and(|last| (max_segment_nodes..=MAX_BUCKET).contains(last));
        // What is computed per segment then fills vector registers, wherever it stands in a block.
        let multiples = buckets.iter().all(|bucket| bucket.is_multiple_of(4));
        check_field(
            ascending && largest && multiples,
            "buckets",
            &format!("{buckets:?}"),
            &format!("ascending multiples of 4, the last from {max_segment_nodes} to {MAX_BUCKET}"),
        )
    }

    fn check_no_whole_graph_fields(&self) -> Result<(), ManifestError> {
        let none = "none for a segment model";
        check_field(
            !self.batch_dependent,
            "batch_dependent",
            &self.batch_dependent,
            "false for a segment model",
        )?;
        check_field(
            self.chunk_configs == 0,
            "chunk_configs",
            &self.chunk_configs,
            none,
        )?;
        check_absent(self.nodes.as_ref(), "nodes", none)?;
        check_absent(self.chunking.as_ref(), "chunking", none)?;
        check_absent(self.permutations.as_ref(), "permutations", none)
    }

    /// Kernels are whole segments, which may be larger. Pieces of other graphs are always cut at the same size.
    fn checked_max_segment_nodes(&self, task: Task) -> Result<usize, ManifestError> {
        let largest = match task.kind().scope {
            Scope::Kernel => MAX_BUCKET,
            Scope::Nodes | Scope::Program | Scope::EveryNode => MAX_SEGMENT_NODES,
        };
        let nodes = self.max_segment_nodes.unwrap_or(MAX_SEGMENT_NODES);
        check_field(
            (MAX_SEGMENT_NODES..=largest).contains(&nodes),
            "max_segment_nodes",
            &nodes,
            &format!("{MAX_SEGMENT_NODES} to {MAX_BUCKET} for tiles, else {MAX_SEGMENT_NODES}"),
        )?;
        Ok(nodes)
    }
}

impl SegmentSettings {
    /// Returns the padded size of a segment of `nodes` nodes.
    #[must_use]
    pub fn bucket(&self, nodes: usize) -> usize {
        self.buckets
            .iter()
            .copied()
            .find(|&bucket| bucket >= nodes)
            .unwrap_or(nodes)
    }

    /// The ONNX files of such a model, with their interfaces.
    pub(in crate::model) fn files(
        &self,
        task: Task,
        features: &ModelFeatures,
    ) -> Vec<(&'static str, Interface)> {
        let of_segment = segment_outlets(features);
        let size = Some(self.embedding_size);
        let embedding = outlet("embedding", Float32, &[None, size]);
        let sum = outlet("sum", Float32, &[None, size]);
        let head = Interface::new(vec![sum], outlet("score", Float32, &[None]));
        if self.is_split {
            // The contract does not name the tensors that the first part passes to the second.
            let encoder = Interface::new(row_outlets(task), embedding).and_further_inputs();
            let segment = Interface::with_any_outputs(of_segment);
            return vec![(SEGMENT, segment), (ENCODER, encoder), (HEAD, head)];
        }
        let inputs = of_segment
            .into_iter()
            .chain([outlet("segment", Int64, &[None])]);
        let inputs = inputs.chain(config_outlet(task, features)).collect();
        vec![(ENCODER, Interface::new(inputs, embedding)), (HEAD, head)]
    }
}

/// The inputs that depend on the segments alone.
fn segment_outlets(features: &ModelFeatures) -> Vec<Outlet> {
    let columns = Some(features.node_features());
    vec![
        outlet("opcode", Int64, &[None, None]),
        outlet("features", Float32, &[None, None, columns]),
        outlet("operands", Float32, &[None, None, None]),
        outlet("mask", Float32, &[None, None]),
    ]
}
