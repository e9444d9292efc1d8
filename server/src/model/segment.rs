//! The sessions of a segment model.

use hlorank_graph::{ConfigInput, FEATURES};
use ort::{session::Session, value::TensorRef};

use super::tensor::config_value;

/// The inputs of `encoder.onnx` for `rows` rows of `segments` distinct segments, padded to `nodes` nodes.
pub struct EncoderInput {
    /// Rows: pairs of segment and local configuration.
    pub rows: usize,
    /// Distinct segments.
    pub segments: usize,
    /// Nodes after padding.
    pub nodes: usize,
    /// `[segments, nodes]`.
    pub opcode: Vec<i64>,
    /// `[segments, nodes, 140]`.
    pub features: Vec<f32>,
    /// `[segments, nodes, nodes]`: 1 where row consumes column.
    pub operands: Vec<f32>,
    /// `[segments, nodes]`: 1 for a real node.
    pub mask: Vec<f32>,
    /// `[rows]`.
    pub segment: Vec<i64>,
    /// The local configuration of each row.
    pub config: ConfigInput,
}

/// A session of each of the two models.
pub(super) struct SegmentSessions {
    encoder: Session,
    head: Session,
}

impl SegmentSessions {
    /// Of models whose interface was checked.
    pub(super) fn new(encoder: Session, head: Session) -> Self {
        Self { encoder, head }
    }

    /// Runs the encoder: `[rows, D]` embeddings.
    pub(super) fn encode(&mut self, input: &EncoderInput) -> ort::Result<Vec<f32>> {
        let EncoderInput { rows, segments, nodes, .. } = *input;
        let opcode = TensorRef::from_array_view(([segments, nodes], input.opcode.as_slice()))?;
        let features = TensorRef::from_array_view(([segments, nodes, FEATURES], input.features.as_slice()))?;
        let operands = TensorRef::from_array_view(([segments, nodes, nodes], input.operands.as_slice()))?;
        let mask = TensorRef::from_array_view(([segments, nodes], input.mask.as_slice()))?;
        let segment = TensorRef::from_array_view(([rows], input.segment.as_slice()))?;
        let config = config_value(&input.config)?;
        let outputs = self.encoder.run(ort::inputs! {
            "opcode" => opcode, "features" => features, "operands" => operands, "mask" => mask,
            "segment" => segment, "config" => config,
        })?;
        Ok(outputs["embedding"].try_extract_tensor::<f32>()?.1.to_vec())
    }

    /// Runs the head on sums of this shape: `[configs]` scores.
    pub(super) fn score(&mut self, shape: [usize; 2], sums: &[f32]) -> ort::Result<Vec<f32>> {
        let sum = TensorRef::from_array_view((shape, sums))?;
        let outputs = self.head.run(ort::inputs! { "sum" => sum })?;
        Ok(outputs["score"].try_extract_tensor::<f32>()?.1.to_vec())
    }
}
