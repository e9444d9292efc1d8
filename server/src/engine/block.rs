use hlorank_graph::{FEATURES, LAYOUT_VALUES, Pad, Segment};

use super::plan::LocalConfiguration;
use crate::model::{ConfigInput, EncoderInput};

/// A row as the encoder takes it.
#[derive(Clone, Copy)]
pub(super) struct BlockRow<'a> {
    pub(super) segment: &'a Segment,
    pub(super) local: LocalConfiguration<'a>,
}

/// What marks a node that is not configurable in the input `config`.
const NOT_CONFIGURABLE: i64 = -2;

/// Rows of a block are a multiple of this. ONNX Runtime computes the last numbers of an array, those that do not fill
/// a vector register, otherwise than the rest, so that an embedding would depend on the rows beside it.
pub(super) const ROW_MULTIPLE: usize = 4;

/// The inputs of the encoder for rows of one task, all padded to `nodes` nodes. Rows with equal segments that follow
/// each other share what depends on the segment alone. The last row is repeated up to the next multiple of
/// [`ROW_MULTIPLE`]; the caller leaves out what comes of that.
pub(super) fn encoder_input(rows: &[BlockRow<'_>], nodes: usize, pad: Pad) -> EncoderInput {
    let repeated =
        rows.last().into_iter().cycle().take(rows.len().next_multiple_of(ROW_MULTIPLE) - rows.len());
    let rows: Vec<_> = rows.iter().chain(repeated).copied().collect();
    let runs: Vec<_> = rows.chunk_by(|one, other| one.segment.digest == other.segment.digest).collect();
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
        config: config_input(&rows, nodes),
    };
    for (number, run) in runs.into_iter().enumerate() {
        write_segment(&mut input, number, run[0].segment, pad);
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

fn config_input(rows: &[BlockRow<'_>], nodes: usize) -> ConfigInput {
    let width = nodes * LAYOUT_VALUES;
    let (mut layouts, mut tiles) = (Vec::new(), Vec::new());
    for row in rows {
        match row.local {
            LocalConfiguration::Tile(features) => tiles.extend_from_slice(features),
            LocalConfiguration::Layout(entries) => {
                let first = layouts.len();
                layouts.resize(first + width, NOT_CONFIGURABLE);
                for (&node, entry) in row.segment.configurable.iter().zip(entries) {
                    let values = &mut layouts[first + usize::from(node) * LAYOUT_VALUES..][..LAYOUT_VALUES];
                    values.iter_mut().zip(entry.values()).for_each(|(slot, value)| *slot = value.into());
                }
            }
        }
    }
    if tiles.is_empty() { ConfigInput::Layout(layouts) } else { ConfigInput::Tile(tiles) }
}
