use hlorank_graph::{FeatureSet, MAX_SEGMENT_NODES, Task};
use serde::Deserialize;

use crate::model::{
    interface::{Element::Float32, Element::Int64, Interface, config_outlet, outlet},
    manifest_error::{ManifestError, check_field},
};

/// Settings of a segment model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSettings {
    /// Length of an embedding.
    pub embedding_size: usize,
    /// Padded segment sizes in nodes, ascending.
    pub buckets: Vec<usize>,
}

/// The fields of a segment model as a manifest holds them.
#[derive(Deserialize)]
pub(in crate::model) struct WrittenSegment {
    #[serde(default)]
    embedding_size: usize,
    #[serde(default)]
    buckets: Vec<usize>,
    batch_dependent: bool,
    /// Only whole-graph models have it.
    #[serde(default)]
    chunk_configs: usize,
}

/// Names of the ONNX files.
pub(super) const ENCODER: &str = "encoder.onnx";
pub(super) const HEAD: &str = "head.onnx";

/// Limits on the nodes of the largest bucket and on the numbers of an embedding, and so on what one run of the encoder
/// takes.
const MAX_BUCKET: usize = 4 * MAX_SEGMENT_NODES;
const MAX_EMBEDDING: usize = 4096;

impl WrittenSegment {
    pub(in crate::model) fn checked(self) -> Result<SegmentSettings, ManifestError> {
        let Self { embedding_size, buckets, batch_dependent, chunk_configs } = self;
        check_field(!batch_dependent, "batch_dependent", &batch_dependent, "false for a segment model")?;
        let sizes = 1..=MAX_EMBEDDING;
        let expected = format!("1 to {MAX_EMBEDDING}");
        check_field(sizes.contains(&embedding_size), "embedding_size", &embedding_size, &expected)?;
        check_field(chunk_configs == 0, "chunk_configs", &chunk_configs, "none for a segment model")?;
        let ascending = buckets.is_sorted_by(|one, next| one < next) && buckets.first() > Some(&0);
        let largest = buckets.last().is_some_and(|last| (MAX_SEGMENT_NODES..=MAX_BUCKET).contains(last));
        // What is computed per segment then fills vector registers, wherever the segment stands in a block.
        let multiples = buckets.iter().all(|bucket| bucket.is_multiple_of(4));
        let expected = format!("ascending multiples of 4, the last from {MAX_SEGMENT_NODES} to {MAX_BUCKET}");
        check_field(ascending && largest && multiples, "buckets", &format!("{buckets:?}"), &expected)?;
        Ok(SegmentSettings { embedding_size, buckets })
    }
}

impl SegmentSettings {
    /// Returns the padded size of a segment of `nodes` nodes.
    #[must_use]
    pub fn bucket(&self, nodes: usize) -> usize {
        self.buckets.iter().copied().find(|&bucket| bucket >= nodes).unwrap_or(nodes)
    }

    /// The ONNX files of such a model, with their interfaces.
    pub(in crate::model) fn files(
        &self,
        task: Task,
        features: &FeatureSet,
    ) -> Vec<(&'static str, Interface)> {
        let encoder = Interface::new(
            vec![
                outlet("opcode", Int64, &[None, None]),
                outlet("features", Float32, &[None, None, Some(features.node_features())]),
                outlet("operands", Float32, &[None, None, None]),
                outlet("mask", Float32, &[None, None]),
                outlet("segment", Int64, &[None]),
                config_outlet(task),
            ],
            outlet("embedding", Float32, &[None, Some(self.embedding_size)]),
        );
        let sum = outlet("sum", Float32, &[None, Some(self.embedding_size)]);
        let head = Interface::new(vec![sum], outlet("score", Float32, &[None]));
        vec![(ENCODER, encoder), (HEAD, head)]
    }
}
