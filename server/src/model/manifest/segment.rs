use std::collections::BTreeMap;

use hlorank_graph::{MAX_SEGMENT_NODES, Scope, Task};
use serde::Deserialize;
use serde_json::Value;

use super::fields::Fields;
use crate::model::{
    ModelFeatures, Rejection,
    onnx::{
        Element::{Float32, Int64},
        Interface, config_outlet, outlet,
    },
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

/// Names of the ONNX files.
pub(in crate::model) const SEGMENT: &str = "segment.onnx";
pub(in crate::model) const ENCODER: &str = "encoder.onnx";
pub(in crate::model) const HEAD: &str = "head.onnx";

/// Limits on the nodes of the largest bucket and on the numbers of an embedding, and so on what one run of the encoder
/// takes.
const MAX_BUCKET: usize = 4 * MAX_SEGMENT_NODES;
const MAX_EMBEDDING: usize = 4096;

impl SegmentSettings {
    /// Reads the fields of a segment model, and looks for `segment.onnx` among the listed files.
    pub(super) fn read(
        fields: &Fields,
        task: Task,
        files: &BTreeMap<String, String>,
    ) -> Result<Self, Rejection> {
        let scope = task.kind().scope;
        if scope == Scope::EveryNode {
            return Err(fields.refused("kind", "graph for a feature set"));
        }
        for field in ["chunk_configs", "nodes", "chunking", "permutations"] {
            fields.absent(field, "none for a segment model")?;
        }
        fields.required(
            "batch_dependent",
            "false for a segment model",
            |dependent| (dependent == false).then_some(()),
        )?;
        let size = |value: &Value| usize::try_from(value.as_u64()?).ok();
        // Kernels are whole segments, which may be larger. Pieces of other graphs are always cut at
        // the same size.
        let largest = match scope {
            Scope::Kernel => MAX_BUCKET,
            Scope::Nodes | Scope::Program | Scope::EveryNode => MAX_SEGMENT_NODES,
        };
        let max_segment_nodes = fields.optional(
            "max_segment_nodes",
            &format!("{MAX_SEGMENT_NODES} to {MAX_BUCKET} for tiles, else {MAX_SEGMENT_NODES}"),
            |nodes| size(nodes).filter(|nodes| (MAX_SEGMENT_NODES..=largest).contains(nodes)),
        )?;
        let max_segment_nodes = max_segment_nodes.unwrap_or(MAX_SEGMENT_NODES);
        let is_sound = |buckets: &Vec<usize>| {
            let is_ascending = buckets.is_sorted_by(|one, next| one < next);
            // The largest bucket holds every segment, so that there is a padded size for each.
            let last = buckets.last();
            let holds_all =
                last.is_some_and(|last| (max_segment_nodes..=MAX_BUCKET).contains(last));
            // What is computed per segment then fills vector registers, wherever it stands in a block.
            let fills_registers = |bucket: &usize| *bucket > 0 && bucket.is_multiple_of(4);
            is_ascending && holds_all && buckets.iter().all(fills_registers)
        };
        Ok(Self {
            embedding_size: fields.required(
                "embedding_size",
                &format!("1 to {MAX_EMBEDDING}"),
                |value| size(value).filter(|size| (1..=MAX_EMBEDDING).contains(size)),
            )?,
            buckets: fields.required(
                "buckets",
                &format!(
                    "ascending multiples of 4, the last from {max_segment_nodes} to {MAX_BUCKET}"
                ),
                |buckets| Vec::deserialize(buckets).ok().filter(is_sound),
            )?,
            max_segment_nodes,
            // A row of a fusion has no local configuration: a second part would have nothing to do.
            is_split: files.contains_key(SEGMENT) && scope != Scope::Program,
        })
    }

    /// Returns the padded size of a segment of `nodes` nodes.
    pub fn bucket(&self, nodes: usize) -> usize {
        let mut buckets = self.buckets.iter().copied();
        buckets.find(|&bucket| bucket >= nodes).unwrap_or(nodes)
    }

    /// The ONNX files of such a model, with their interfaces.
    pub(super) fn files(
        &self,
        task: Task,
        features: &ModelFeatures,
    ) -> Vec<(&'static str, Interface)> {
        // These inputs depend on the segments alone.
        let mut inputs = vec![
            outlet("opcode", Int64, &[None, None]),
            outlet(
                "features",
                Float32,
                &[None, None, Some(features.node_features())],
            ),
            outlet("operands", Float32, &[None, None, None]),
            outlet("mask", Float32, &[None, None]),
        ];
        let size = Some(self.embedding_size);
        let embedding = outlet("embedding", Float32, &[None, size]);
        let sum = outlet("sum", Float32, &[None, size]);
        let head = Interface::new(vec![sum], outlet("score", Float32, &[None]));
        if !self.is_split {
            inputs.push(outlet("segment", Int64, &[None]));
            inputs.extend(config_outlet(task, features));
            return vec![(ENCODER, Interface::new(inputs, embedding)), (HEAD, head)];
        }
        // The second part takes tiles as they are; of layouts, the distinct entries, and the number
        // of the entry of each node.
        let width = Some(features.config_width(task));
        let rows = match task.kind().scope {
            Scope::Nodes => vec![
                outlet("entries", Int64, &[None, width]),
                outlet("config", Int64, &[None, None]),
            ],
            Scope::Kernel | Scope::Program | Scope::EveryNode => {
                vec![outlet("config", Float32, &[None, width])]
            }
        };
        // The contract does not name the tensors that the first part passes to the second.
        let segment = Interface {
            inputs,
            output: None,
            has_further_inputs: false,
        };
        let encoder = Interface {
            has_further_inputs: true,
            ..Interface::new(rows, embedding)
        };
        vec![(SEGMENT, segment), (ENCODER, encoder), (HEAD, head)]
    }
}
