use hlorank_graph::{ConfigInput, ConfigValues, FEATURES, LOOP_FEATURES, Pad, Scope, Segment};

use super::plan::PlannedRow;
use crate::{
    device,
    model::{EncoderInput, ModelFacts},
};

/// Rows of one task that are evaluated together, all padded to `nodes` nodes.
pub(super) struct Block<'a> {
    /// The last row is repeated up to the row multiple of the device; the caller drops the embeddings of the copies.
    rows: Vec<PlannedRow<'a>>,
    /// The first of consecutive rows with equal segments, which share the inputs that depend on the segment alone.
    pub(super) segments: Vec<PlannedRow<'a>>,
    nodes: usize,
}

impl<'a> Block<'a> {
    pub(super) fn new(rows: &[PlannedRow<'a>], nodes: usize) -> Self {
        // A copy of a real row adds no segment to the block, unlike a row of zeros.
        let padded = rows.len().next_multiple_of(device::ROW_MULTIPLE);
        let repeated = rows.last().into_iter().cycle().take(padded - rows.len());
        let rows: Vec<_> = rows.iter().chain(repeated).copied().collect();
        let segments = runs(&rows).map(|run| run[0]).collect();
        Self {
            rows,
            segments,
            nodes,
        }
    }

    /// What describes the rows; without their segments.
    pub(super) fn row_input(&self, model: &ModelFacts) -> EncoderInput {
        let numbered = (0..).zip(runs(&self.rows));
        EncoderInput {
            rows: self.rows.len(),
            nodes: self.nodes,
            segment: numbered
                .flat_map(|(number, run)| std::iter::repeat_n(number, run.len()))
                .collect(),
            config: config_input(&self.rows, self.nodes, model),
            ..EncoderInput::default()
        }
    }

    /// Adds the segments of some rows to an input.
    pub(super) fn add_segments(
        &self,
        input: EncoderInput,
        rows: &[PlannedRow<'_>],
        model: &ModelFacts,
    ) -> EncoderInput {
        let segments = rows.len();
        let nodes = self.nodes;
        let mut input = EncoderInput {
            segments,
            nodes,
            opcode: vec![0; segments * nodes],
            features: vec![0.0; segments * nodes * FEATURES],
            operands: vec![0.0; segments * nodes * nodes],
            mask: vec![0.0; segments * nodes],
            ..input
        };
        for (number, row) in rows.iter().enumerate() {
            write_segment(&mut input, number, &row.segment(), model.pad);
        }
        input
    }
}

fn runs<'a, 'b>(rows: &'b [PlannedRow<'a>]) -> impl Iterator<Item = &'b [PlannedRow<'a>]> {
    rows.chunk_by(|one, other| one.facts().digest == other.facts().digest)
}

fn write_segment(input: &mut EncoderInput, number: usize, segment: &Segment, pad: Pad) {
    let first = number * input.nodes;
    for (slot, &opcode) in input.opcode[first..].iter_mut().zip(&segment.opcodes) {
        *slot = opcode.into();
    }
    segment.write_features(
        pad,
        &mut input.features[first * FEATURES..][..segment.len() * FEATURES],
    );
    input.mask[first..][..segment.len()].fill(1.0);
    // A dense matrix of the edges, because the encoder takes means over neighbours by matrix
    // products. The rows and columns of padding stay 0, so they add nothing.
    let operands = &mut input.operands[first * input.nodes..][..input.nodes * input.nodes];
    for &[consumer, producer] in &segment.edges {
        operands[usize::from(consumer) * input.nodes + usize::from(producer)] = 1.0;
    }
}

fn config_input(rows: &[PlannedRow<'_>], nodes: usize, model: &ModelFacts) -> Option<ConfigInput> {
    let kind = model.task.kind();
    let loops = if model.has_loops { LOOP_FEATURES } else { 0 };
    let shape = match kind.scope {
        Scope::Kernel => vec![rows.len(), kind.width + loops],
        Scope::Nodes => vec![rows.len(), nodes, kind.width],
        // A choice of fusions is in the kernels that it makes, which are the segments.
        Scope::Program | Scope::EveryNode => return None,
    };
    let mut values = ConfigValues::new(kind.element);
    for row in rows {
        row.locals
            .write(row.row, &row.segment(), nodes, &mut values);
        if let Some(loops) = row.loops().filter(|_| model.has_loops) {
            row.locals.write_loops(row.row, loops, &mut values);
        }
    }
    Some(ConfigInput { shape, values })
}
