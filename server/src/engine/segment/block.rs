use hlorank_graph::{ConfigInput, ConfigValues, FEATURES, Kind, Pad, Scope, Segment};

use super::plan::PlannedRow;
use crate::{
    device::DeviceProfile,
    model::{EncoderInput, ModelFacts},
};

/// Makes the inputs of the encoder for rows of one task, all padded to `nodes` nodes. Consecutive rows with equal segments
/// share the inputs that depend on the segment alone. The last row is repeated up to the row multiple of the device; the
/// caller drops the embeddings of the copies.
pub(super) fn encoder_input(
    rows: &[PlannedRow<'_>],
    nodes: usize,
    model: &ModelFacts,
    device: &DeviceProfile,
) -> EncoderInput {
    let repeated =
        rows.last().into_iter().cycle().take(rows.len().next_multiple_of(device.row_multiple) - rows.len());
    let rows: Vec<_> = rows.iter().chain(repeated).copied().collect();
    let runs: Vec<_> = rows.chunk_by(|one, other| one.facts().digest == other.facts().digest).collect();
    let segment = (0..).zip(&runs).flat_map(|(number, run)| std::iter::repeat_n(number, run.len())).collect();
    let mut input = EncoderInput {
        rows: rows.len(),
        segments: runs.len(),
        nodes,
        opcode: vec![0; runs.len() * nodes],
        features: vec![0.0; runs.len() * nodes * FEATURES],
        operands: vec![0.0; runs.len() * nodes * nodes],
        mask: vec![0.0; runs.len() * nodes],
        segment,
        config: config_input(&rows, nodes, model.task.kind()),
    };
    for (number, run) in runs.into_iter().enumerate() {
        write_segment(&mut input, number, &run[0].segment(), model.pad);
    }
    input
}

fn write_segment(input: &mut EncoderInput, number: usize, segment: &Segment, pad: Pad) {
    let first = number * input.nodes;
    for (slot, &opcode) in input.opcode[first..].iter_mut().zip(&segment.opcodes) {
        *slot = opcode.into();
    }
    segment.write_features(pad, &mut input.features[first * FEATURES..][..segment.len() * FEATURES]);
    input.mask[first..][..segment.len()].fill(1.0);
    let operands = &mut input.operands[first * input.nodes..][..input.nodes * input.nodes];
    for &[consumer, producer] in &segment.edges {
        operands[usize::from(consumer) * input.nodes + usize::from(producer)] = 1.0;
    }
}

fn config_input(rows: &[PlannedRow<'_>], nodes: usize, kind: &Kind) -> Option<ConfigInput> {
    let shape = match kind.scope {
        Scope::Kernel => vec![rows.len(), kind.width],
        Scope::Nodes => vec![rows.len(), nodes, kind.width],
        Scope::Program | Scope::EveryNode => return None,
    };
    let mut values = ConfigValues::new(kind.element);
    for row in rows {
        row.locals.write(row.row, &row.segment(), nodes, &mut values);
    }
    Some(ConfigInput { shape, values })
}
