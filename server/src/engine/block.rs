use hlorank_graph::{FEATURES, LAYOUT_VALUES, Pad, Segment, SegmentedGraph};

use super::plan::{Locals, Plan, Row};
use crate::registry::{ConfigInput, EncoderInput, Manifest};

/// Rows that go through the encoder together, padded to one size.
pub(super) struct Block {
    /// Positions in [`Plan::rows`], by segment.
    pub(super) rows: Vec<usize>,
    /// Nodes after padding.
    nodes: usize,
}

/// Nodes of a block, padding included: activations of a few hundred bytes a node then fit a core's cache.
const BLOCK_NODES: usize = 2048;

/// What marks a node that is not configurable in the input `config`.
const NOT_CONFIGURABLE: i64 = -2;

/// Cuts the rows of a plan into blocks: by padded size, then by segment.
pub(super) fn blocks(plan: &Plan, graph: &SegmentedGraph, manifest: &Manifest) -> Vec<Block> {
    let nodes = |row: usize| manifest.bucket(graph.segments[plan.rows[row].segment].len());
    let mut order: Vec<usize> = (0..plan.rows.len()).collect();
    order.sort_by_key(|&row| (nodes(row), plan.rows[row].segment));
    let buckets = order.chunk_by(|&one, &other| nodes(one) == nodes(other));
    let block = |rows: &[usize], nodes: usize| Block { rows: rows.to_vec(), nodes };
    let cut = |bucket: &[usize]| {
        let nodes = nodes(bucket[0]);
        bucket.chunks((BLOCK_NODES / nodes).max(2)).map(|rows| block(rows, nodes)).collect::<Vec<_>>()
    };
    buckets.flat_map(cut).collect()
}

impl Block {
    /// The inputs of the encoder. A lone row is sent twice, since it rounds differently from the same row among
    /// others; the caller takes the first.
    pub(super) fn encoder_input(&self, plan: &Plan, graph: &SegmentedGraph, pad: Pad) -> EncoderInput {
        let mut rows: Vec<Row> = self.rows.iter().map(|&row| plan.rows[row]).collect();
        if rows.len() == 1 {
            rows.push(rows[0]);
        }
        let runs: Vec<&[Row]> = rows.chunk_by(|one, other| one.segment == other.segment).collect();
        let segments: Vec<&Segment> = runs.iter().map(|run| &graph.segments[run[0].segment]).collect();
        let segment =
            (0..).zip(&runs).flat_map(|(number, run)| std::iter::repeat_n(number, run.len())).collect();
        let mut input = EncoderInput {
            rows: rows.len(),
            segments: segments.len(),
            nodes: self.nodes,
            opcode: vec![0; segments.len() * self.nodes],
            features: vec![0.0; segments.len() * self.nodes * FEATURES],
            operands: vec![0.0; segments.len() * self.nodes * self.nodes],
            mask: vec![0.0; segments.len() * self.nodes],
            segment,
            config: self.config_input(plan, graph, &rows),
        };
        for (number, segment) in segments.into_iter().enumerate() {
            self.write_segment(&mut input, number, segment, pad);
        }
        input
    }

    fn write_segment(&self, input: &mut EncoderInput, number: usize, segment: &Segment, pad: Pad) {
        let first = number * self.nodes;
        for (slot, &opcode) in input.opcode[first..].iter_mut().zip(&segment.opcodes) {
            *slot = opcode.into();
        }
        segment.write_features(pad, &mut input.features[first * FEATURES..][..segment.len() * FEATURES]);
        input.mask[first..][..segment.len()].fill(1.0);
        let operands = &mut input.operands[first * self.nodes..][..self.nodes * self.nodes];
        for &[consumer, producer] in &segment.edges {
            operands[usize::from(consumer) * self.nodes + usize::from(producer)] = 1.0;
        }
    }

    fn config_input(&self, plan: &Plan, graph: &SegmentedGraph, rows: &[Row]) -> ConfigInput {
        match &plan.locals {
            Locals::Tile(tiles) => ConfigInput::Tile(rows.iter().flat_map(|row| tiles[row.local]).collect()),
            Locals::Layout(entries) => {
                let width = self.nodes * LAYOUT_VALUES;
                let mut config = vec![NOT_CONFIGURABLE; rows.len() * width];
                for (row, values) in rows.iter().zip(config.chunks_exact_mut(width)) {
                    let nodes = &graph.segments[row.segment].configurable;
                    for (&node, entry) in nodes.iter().zip(&entries[row.local..]) {
                        let slots = &mut values[usize::from(node) * LAYOUT_VALUES..][..LAYOUT_VALUES];
                        slots.iter_mut().zip(entry.values()).for_each(|(slot, value)| *slot = value.into());
                    }
                }
                ConfigInput::Layout(config)
            }
        }
    }
}
