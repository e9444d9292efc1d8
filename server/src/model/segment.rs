//! Segment models: an encoder for the rows of a graph's segments, and a head for the sums of their embeddings.

mod tensors;

use std::sync::Arc;

use hlorank_graph::{ConfigInput, FEATURES};
use ort::{session::Session, value::Outlet};

pub use self::tensors::SegmentTensors;
use self::tensors::{Entries, KnownShapes, RowTensors};
use super::{
    ModelFacts, Rejection, SegmentSettings,
    manifest::{ENCODER, HEAD, SEGMENT},
    onnx::check_names,
    sessions::{Inputs, ModelFailed, PerWorker, config_value, output, view},
};
use crate::{compute::Worker, runtime::Interrupt};

/// The inputs of the encoder for `rows` rows of `segments` distinct segments, padded to `nodes` nodes.
#[derive(Default)]
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

/// Names of the inputs of the second part of an encoder that are no tensors of segments.
const CONFIGURATION: [&str; 2] = ["entries", "config"];

/// A loaded segment model.
pub struct SegmentModel {
    /// What models of every kind have.
    pub facts: ModelFacts,
    /// Its settings.
    pub settings: SegmentSettings,
    sessions: PerWorker<Sessions>,
    /// A head of which no run hangs has one session more, for calls that stay on the thread that received them.
    heads: PerWorker<Session>,
    shapes: KnownShapes,
}

/// One worker's sessions.
pub(super) struct Sessions {
    /// The first part of an encoder in two parts.
    segment: Option<Session>,
    /// Names of the outputs of the first part, which are inputs of the encoder.
    tensors: Vec<String>,
    encoder: Session,
}

impl SegmentModel {
    pub(super) fn new(
        facts: ModelFacts,
        settings: SegmentSettings,
        sessions: PerWorker<Sessions>,
        heads: PerWorker<Session>,
    ) -> Self {
        Self {
            facts,
            settings,
            sessions,
            heads,
            shapes: KnownShapes::default(),
        }
    }

    /// Whether [`Self::score`] has a session for a worker. The receiver of a call has one if no run of the head hangs.
    pub fn has_head(&self, worker: Worker) -> bool {
        worker.0 < self.heads.len()
    }

    /// Returns an interrupt for runs of [`Self::encode`] and [`Self::score`].
    pub fn interrupt(&self) -> Result<Interrupt, ModelFailed> {
        // Blocks have a maximum size, so the memory of a run is worth keeping for the next one.
        self.sessions.interrupt(ENCODER, 0)
    }

    /// Runs the encoder, and returns `[rows, D]` embeddings. Fails once it is interrupted.
    pub fn encode(
        &self,
        worker: Worker,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        if self.settings.is_split {
            let tensors = self.tensors(worker, input, interrupt)?;
            return self.encode_rows(worker, &tensors, input, interrupt);
        }
        self.sessions.run(worker, ENCODER, interrupt, |sessions| {
            let mut inputs = segment_inputs(input)?;
            inputs.push(("segment".into(), view([input.rows], &input.segment)?));
            if let Some(config) = &input.config {
                inputs.push(("config".into(), config_value(config)?));
            }
            self.embeddings(&mut sessions.encoder, inputs, input, interrupt)
        })
    }

    /// Runs the first part of an encoder in two parts: returns the tensors of each segment of an input.
    pub fn tensors(
        &self,
        worker: Worker,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<SegmentTensors>, ModelFailed> {
        let tensors = self.sessions.run(worker, SEGMENT, interrupt, |sessions| {
            let Some(segment) = &mut sessions.segment else {
                return Ok(Vec::new());
            };
            let inputs = segment_inputs(input)?;
            let outputs = segment.run_with_options(inputs, interrupt.options())?;
            SegmentTensors::of_segments(&outputs, &sessions.tensors, input.segments)
        })?;
        self.shapes.learn(input.nodes, &tensors);
        Ok(tensors)
    }

    /// Returns the tensors of a segment with these values, which [`Self::tensors`] computed earlier for the same padded size;
    /// `None` if this model has not computed any of that size yet.
    pub fn known_tensors(&self, nodes: usize, values: Arc<[f32]>) -> Option<SegmentTensors> {
        self.shapes.tensors(nodes, values)
    }

    /// Runs the second part of an encoder in two parts, given the tensors of each segment of an input, of which it uses only
    /// what describes rows. Returns `[rows, D]` embeddings.
    pub fn encode_rows(
        &self,
        worker: Worker,
        tensors: &[SegmentTensors],
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        self.sessions.run(worker, ENCODER, interrupt, |sessions| {
            let rows = RowTensors::new(tensors, &input.segment);
            let mut inputs = Inputs::new();
            for (name, tensor) in sessions.tensors.iter().zip(rows.values()) {
                inputs.push((name.as_str().into(), tensor?));
            }
            // Layouts repeat few entries, and the encoder embeds each of them once.
            let entries = input.config.as_ref().and_then(Entries::from_input);
            if let Some(entries) = &entries {
                let distinct = view([entries.len(), entries.width], &entries.distinct)?;
                inputs.push(("entries".into(), distinct));
                inputs.push(("config".into(), view(entries.shape, &entries.numbers)?));
            } else if let Some(config) = &input.config {
                inputs.push(("config".into(), config_value(config)?));
            }
            self.embeddings(&mut sessions.encoder, inputs, input, interrupt)
        })
    }

    fn embeddings(
        &self,
        encoder: &mut Session,
        inputs: Inputs<'_>,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> ort::Result<Vec<f32>> {
        let expected = input.rows * self.settings.embedding_size;
        output(encoder, inputs, "embedding", expected, interrupt)
    }

    /// Runs the head on `[configs, D]` sums, and returns `[configs]` scores. Fails once it is interrupted.
    pub fn score(
        &self,
        worker: Worker,
        sums: &[f32],
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        let size = self.settings.embedding_size;
        let configs = sums.len() / size;
        self.heads.run(worker, HEAD, interrupt, |head| {
            let inputs = ort::inputs! { "sum" => view([configs, size], sums)? };
            output(head, inputs, "score", configs, interrupt)
        })
    }
}

impl Sessions {
    /// Makes the sessions; `session` makes that of one file. Fails if the second part of an encoder does not take what the first
    /// part computes.
    pub(super) fn new(
        session: impl Fn(&'static str) -> Result<Session, Rejection>,
        settings: &SegmentSettings,
    ) -> Result<Self, Rejection> {
        let encoder = session(ENCODER)?;
        let segment = settings.is_split.then(|| session(SEGMENT)).transpose()?;
        let mut tensors = Vec::new();
        if let Some(segment) = &segment {
            let outputs = segment.outputs().iter();
            tensors.extend(outputs.map(|outlet| outlet.name().to_owned()));
            let inputs = encoder.inputs().iter().map(Outlet::name);
            let taken = inputs.filter(|name| !CONFIGURATION.contains(name));
            // The sessions pass tensors by name, so their order does not matter.
            check_names(ENCODER, "inputs", taken, tensors.iter().map(String::as_str))?;
        }
        Ok(Self {
            segment,
            tensors,
            encoder,
        })
    }
}

/// The inputs that depend on the segments alone.
fn segment_inputs(input: &EncoderInput) -> ort::Result<Inputs<'_>> {
    let segments = input.segments;
    let nodes = input.nodes;
    Ok(ort::inputs! {
        "opcode" => view([segments, nodes], &input.opcode)?,
        "features" => view([segments, nodes, FEATURES], &input.features)?,
        "operands" => view([segments, nodes, nodes], &input.operands)?,
        "mask" => view([segments, nodes], &input.mask)?,
    })
}
