use std::sync::Arc;

use hlorank_graph::{ConfigInput, FEATURES};
use ort::{session::Session, value::Outlet};

use super::{
    SegmentTensors,
    entries::Entries,
    tensors::{KnownShapes, RowTensors},
};
use crate::{
    compute::Worker,
    model::{
        ArtifactError,
        facts::ModelFacts,
        interface::check_names,
        manifest::{ENCODER, HEAD, SEGMENT, SegmentSettings},
        sessions::{ModelFailed, PerWorker},
        tensor::{self, Inputs, config_value, view},
    },
    runtime::Interrupt,
};

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
    facts: ModelFacts,
    settings: SegmentSettings,
    sessions: PerWorker<Sessions>,
    shapes: KnownShapes,
}

/// One worker's sessions.
pub(in crate::model) struct Sessions {
    /// The first part of an encoder in two parts.
    segment: Option<SegmentSession>,
    encoder: Session,
    head: Session,
}

struct SegmentSession {
    session: Session,
    /// Names of its outputs, which are inputs of the encoder.
    tensors: Vec<String>,
}

impl SegmentModel {
    pub(in crate::model) fn new(
        facts: ModelFacts,
        settings: SegmentSettings,
        sessions: PerWorker<Sessions>,
    ) -> Self {
        Self {
            facts,
            settings,
            sessions,
            shapes: KnownShapes::default(),
        }
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
        let expected = input.rows * self.settings.embedding_size;
        let encode = |sessions: &mut Sessions| sessions.encode(input, interrupt);
        self.sessions
            .run(worker, ENCODER, expected, interrupt, encode)
    }

    /// Runs the first part of an encoder in two parts: returns the tensors of each segment of an input.
    pub fn tensors(
        &self,
        worker: Worker,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<SegmentTensors>, ModelFailed> {
        let run = |sessions: &mut Sessions| sessions.tensors(input, interrupt);
        let tensors = self.sessions.run_any(worker, SEGMENT, interrupt, run)?;
        self.shapes.learn(input.nodes, &tensors);
        Ok(tensors)
    }

    /// Returns the tensors of a segment with these values, which [`Self::tensors`] computed earlier for the same padded size;
    /// `None` if this model has not computed any of that size yet.
    #[must_use]
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
        let expected = input.rows * self.settings.embedding_size;
        let encode = |sessions: &mut Sessions| sessions.encode_rows(tensors, input, interrupt);
        self.sessions
            .run(worker, ENCODER, expected, interrupt, encode)
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
        let score = |sessions: &mut Sessions| {
            let inputs = ort::inputs! { "sum" => view([configs, size], sums)? };
            tensor::run(&mut sessions.head, inputs, "score", interrupt)
        };
        self.sessions.run(worker, HEAD, configs, interrupt, score)
    }
}

impl Sessions {
    /// Makes the sessions; `session` makes that of one file.
    pub(in crate::model) fn new(
        session: impl Fn(&'static str) -> Result<Session, ArtifactError>,
        settings: &SegmentSettings,
    ) -> Result<Self, ArtifactError> {
        let encoder = session(ENCODER)?;
        let segment = settings
            .is_split
            .then(|| SegmentSession::new(session(SEGMENT)?, &encoder));
        Ok(Self {
            segment: segment.transpose()?,
            encoder,
            head: session(HEAD)?,
        })
    }

    fn tensors(
        &mut self,
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> ort::Result<Vec<SegmentTensors>> {
        let Some(segment) = &mut self.segment else {
            return Ok(Vec::new());
        };
        let inputs = segment_inputs(input)?;
        let outputs = segment
            .session
            .run_with_options(inputs, interrupt.options())?;
        SegmentTensors::of_segments(&outputs, &segment.tensors, input.segments)
    }

    fn encode_rows(
        &mut self,
        tensors: &[SegmentTensors],
        input: &EncoderInput,
        interrupt: &Interrupt,
    ) -> ort::Result<Vec<f32>> {
        let names = self.segment.iter().flat_map(|segment| &segment.tensors);
        let rows = RowTensors::new(tensors, &input.segment);
        let entries = input.config.as_ref().and_then(Entries::of);
        let mut inputs = Inputs::new();
        for (name, tensor) in names.zip(rows.values()) {
            inputs.push((name.as_str().into(), tensor?));
        }
        add_configuration(&mut inputs, entries.as_ref(), input.config.as_ref())?;
        tensor::run(&mut self.encoder, inputs, "embedding", interrupt)
    }

    fn encode(&mut self, input: &EncoderInput, interrupt: &Interrupt) -> ort::Result<Vec<f32>> {
        let mut inputs = segment_inputs(input)?;
        inputs.push(("segment".into(), view([input.rows], &input.segment)?));
        if let Some(config) = &input.config {
            inputs.push(("config".into(), config_value(config)?));
        }
        tensor::run(&mut self.encoder, inputs, "embedding", interrupt)
    }
}

impl SegmentSession {
    /// Fails if the encoder does not take what the session computes.
    fn new(session: Session, encoder: &Session) -> Result<Self, ArtifactError> {
        let tensors: Vec<String> = session
            .outputs()
            .iter()
            .map(|outlet| outlet.name().to_owned())
            .collect();
        let inputs = encoder.inputs().iter().map(Outlet::name);
        let taken = inputs.filter(|name| !CONFIGURATION.contains(name));
        // The sessions pass tensors by name, so their order does not matter.
        check_names(ENCODER, "inputs", taken, tensors.iter().map(String::as_str))?;
        Ok(Self { session, tensors })
    }
}

/// Adds the local configurations of rows.
fn add_configuration<'a>(
    inputs: &mut Inputs<'a>,
    entries: Option<&'a Entries<'_>>,
    config: Option<&'a ConfigInput>,
) -> ort::Result<()> {
    // Layouts repeat few entries, and the encoder embeds each of them once.
    if let Some(found) = entries {
        let distinct = view([found.len(), found.width], &found.distinct)?;
        inputs.push(("entries".into(), distinct));
        inputs.push(("config".into(), view(found.shape, &found.numbers)?));
    } else if let Some(config) = config {
        inputs.push(("config".into(), config_value(config)?));
    }
    Ok(())
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
