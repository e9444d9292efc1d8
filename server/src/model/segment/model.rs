use hlorank_graph::{ConfigInput, FEATURES};
use ort::{session::Session, value::TensorRef};

use super::{
    SegmentSettings,
    settings::{ENCODER, HEAD},
};
use crate::{
    compute::Worker,
    model::{
        ArtifactError,
        facts::ModelFacts,
        sessions::{ModelFailed, PerWorker},
        tensor::config_value,
    },
    runtime::Interrupt,
};

/// The inputs of `encoder.onnx` for `rows` rows of `segments` distinct segments, padded to `nodes` nodes.
pub struct EncoderInput {
    /// Number of rows.
    pub rows: usize,
    /// Number of distinct segments.
    pub segments: usize,
    /// Number of nodes after padding.
    pub nodes: usize,
    /// `[segments, nodes]`.
    pub opcode: Vec<i64>,
    /// `[segments, nodes, 140]`.
    pub features: Vec<f32>,
    /// `[segments, nodes, nodes]`: 1 where the row's node consumes the column's node.
    pub operands: Vec<f32>,
    /// `[segments, nodes]`: 1 for a real node.
    pub mask: Vec<f32>,
    /// `[rows]`: which of the segments each row is of.
    pub segment: Vec<i64>,
    /// The local configuration of each row, if models of the task take one.
    pub config: Option<ConfigInput>,
}

/// A loaded segment model.
pub struct SegmentModel {
    facts: ModelFacts,
    settings: SegmentSettings,
    sessions: PerWorker<Sessions>,
}

/// One worker's sessions.
pub(in crate::model) struct Sessions {
    encoder: Session,
    head: Session,
}

impl SegmentModel {
    pub(in crate::model) fn new(
        facts: ModelFacts,
        settings: SegmentSettings,
        sessions: PerWorker<Sessions>,
    ) -> Self {
        Self { facts, settings, sessions }
    }

    /// What models of every kind have.
    #[must_use]
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &SegmentSettings {
        &self.settings
    }

    /// Returns an interrupt for runs of [`Self::encode`] and [`Self::score`].
    pub fn interrupt(&self) -> Result<Interrupt, ModelFailed> {
        self.sessions.interrupt(ENCODER)
    }

    /// Runs the encoder, and returns `[rows, D]` embeddings. Fails once it is interrupted.
    pub fn encode(
        &self,
        worker: Worker,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let expected = input.rows * self.settings.embedding_size;
        let encode = |sessions: &mut Sessions| sessions.encode(input, interrupt);
        self.sessions.run(worker, ENCODER, expected, interrupt, encode)
    }

    /// Runs the head on `[configs, D]` sums, and returns `[configs]` scores. Fails once it is interrupted.
    pub fn score(
        &self,
        worker: Worker,
        sums: &[f32],
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let shape = [sums.len() / self.settings.embedding_size, self.settings.embedding_size];
        let score = |sessions: &mut Sessions| sessions.score(shape, sums, interrupt);
        self.sessions.run(worker, HEAD, shape[0], interrupt, score)
    }
}

impl Sessions {
    /// Makes the sessions; `session` makes that of one file.
    pub(in crate::model) fn new(
        session: impl Fn(&'static str) -> Result<Session, ArtifactError>,
    ) -> Result<Self, ArtifactError> {
        Ok(Self { encoder: session(ENCODER)?, head: session(HEAD)? })
    }

    fn encode(&mut self, input: &EncoderInput, interrupt: &Interrupt) -> ort::Result<Vec<f32>> {
        let EncoderInput { rows, segments, nodes, .. } = *input;
        let opcode = TensorRef::from_array_view(([segments, nodes], input.opcode.as_slice()))?;
        let features = TensorRef::from_array_view(([segments, nodes, FEATURES], input.features.as_slice()))?;
        let operands = TensorRef::from_array_view(([segments, nodes, nodes], input.operands.as_slice()))?;
        let mask = TensorRef::from_array_view(([segments, nodes], input.mask.as_slice()))?;
        let segment = TensorRef::from_array_view(([rows], input.segment.as_slice()))?;
        let mut inputs = ort::inputs! {
            "opcode" => opcode, "features" => features, "operands" => operands, "mask" => mask,
            "segment" => segment,
        };
        if let Some(config) = &input.config {
            inputs.push(("config".into(), config_value(config)?));
        }
        let outputs = self.encoder.run_with_options(inputs, interrupt.options())?;
        Ok(outputs["embedding"].try_extract_tensor::<f32>()?.1.to_vec())
    }

    fn score(&mut self, shape: [usize; 2], sums: &[f32], interrupt: &Interrupt) -> ort::Result<Vec<f32>> {
        let sum = TensorRef::from_array_view((shape, sums))?;
        let outputs = self.head.run_with_options(ort::inputs! { "sum" => sum }, interrupt.options())?;
        Ok(outputs["score"].try_extract_tensor::<f32>()?.1.to_vec())
    }
}
