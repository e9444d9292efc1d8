use std::ops::Range;

use hlorank_graph::{
    Configurations, LayoutBatch, LayoutEntry, Segment, SegmentedGraph, TILE_FEATURES, TileBatch,
};

use super::{Reuse, as_u32, distinct::Distinct, layout_rows::LayoutRows, slices::SliceSet};

/// What has to be evaluated for a batch, each distinct thing once.
///
/// Equality is by content throughout: hash maps compare what they hold.
pub(super) struct Plan {
    distinct: Distinct,
    /// Pairs of segment and local configuration that differ.
    pub(super) rows: Vec<Row>,
    /// What the rows' local configurations hold.
    locals: Locals,
    /// `[distinct, occurrences]` the row of each segment of each distinct configuration.
    row_of: Vec<u32>,
    occurrences: usize,
}

/// A pair of segment and local configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Position in the graph's distinct segments.
    pub(super) segment: usize,
    /// Position of the local configuration in [`Locals`].
    pub(super) local: usize,
}

/// The local configuration of one row.
#[derive(Clone, Copy)]
pub(super) enum LocalConfiguration<'a> {
    /// One entry per configurable node of the row's segment.
    Layout(&'a [LayoutEntry]),
    /// The features of the tile.
    Tile(&'a [f32; TILE_FEATURES]),
}

/// Local configurations.
enum Locals {
    /// Per segment, one entry per configurable node.
    Layout(Vec<SliceSet<LayoutEntry>>),
    /// The features of the tile.
    Tile(Vec<[f32; TILE_FEATURES]>),
}

/// Distinct rows that one call may need, and rows that it may need over all of its configurations.
pub(super) const MAX_ROWS: usize = 4 << 20;
const MAX_ROWS_OF_CONFIGS: usize = 64 << 20;

/// More than one call may take, counted before memory is taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the batch needs too much memory: the embeddings of more than {MAX_ROWS} distinct pairs of segment and local \
     configuration, or of more than 1 GiB, or more than {MAX_ROWS_OF_CONFIGS} pairs over all configurations; send \
     several batches"
)]
pub struct TooManyRows;

impl Plan {
    pub(super) fn new(graph: &SegmentedGraph, configurations: &Configurations) -> Result<Self, TooManyRows> {
        let distinct = Distinct::of(configurations);
        if distinct.first.len().saturating_mul(graph.occurrences.len()) > MAX_ROWS_OF_CONFIGS {
            return Err(TooManyRows);
        }
        match configurations {
            Configurations::Layout(batch) => Self::of_layouts(graph, batch, distinct),
            Configurations::Tile(batch) => Self::of_tiles(graph, batch, distinct),
        }
    }

    fn of_layouts(
        graph: &SegmentedGraph,
        batch: &LayoutBatch,
        distinct: Distinct,
    ) -> Result<Self, TooManyRows> {
        let occurrences = graph.occurrences.len();
        let mut row_of = Vec::with_capacity(distinct.first.len() * occurrences);
        let (mut rows, mut before) = (LayoutRows::new(graph, batch), None);
        for &config in &distinct.first {
            rows.append(batch.row(config), before, &mut row_of)?;
            before = Some(batch.row(config));
        }
        let (rows, locals) = rows.finish();
        Ok(Self { distinct, rows, locals: Locals::Layout(locals), row_of, occurrences })
    }

    fn of_tiles(graph: &SegmentedGraph, batch: &TileBatch, distinct: Distinct) -> Result<Self, TooManyRows> {
        let segments = graph.segments.len();
        if distinct.first.len() * segments > MAX_ROWS {
            return Err(TooManyRows);
        }
        let locals = 0..distinct.first.len();
        let rows = locals
            .clone()
            .flat_map(|local| (0..segments).map(move |segment| Row { segment, local }))
            .collect();
        let row = |local: usize, segment: usize| as_u32(local * segments + segment);
        let row_of = locals
            .flat_map(|local| graph.occurrences.iter().map(move |occurrence| row(local, occurrence.segment)))
            .collect();
        let locals =
            Locals::Tile(distinct.first.iter().map(|&config| batch.get(config).features()).collect());
        Ok(Self { distinct, rows, locals, row_of, occurrences: graph.occurrences.len() })
    }

    /// Segments of a configuration; at least 1.
    pub(super) fn occurrences(&self) -> usize {
        self.occurrences
    }

    pub(super) fn distinct_configs(&self) -> usize {
        self.row_of.len() / self.occurrences
    }

    /// How much was shared, where so many rows were evaluated for this call.
    pub(super) fn reuse(&self, rows_evaluated: usize) -> Reuse {
        Reuse {
            configs: self.distinct.of_item.len(),
            distinct_configs: self.distinct_configs(),
            segment_rows: self.distinct.of_item.len() * self.occurrences,
            distinct_segment_rows: self.rows.len(),
            rows_evaluated,
        }
    }

    /// The score of every configuration from those of the distinct ones.
    pub(super) fn fan_out(&self, distinct_scores: &[f32]) -> Vec<f32> {
        self.distinct.fan_out(distinct_scores)
    }

    /// The rows of distinct configurations, one slice of `[occurrences]` each.
    pub(super) fn rows_of(&self, configs: Range<usize>) -> impl Iterator<Item = &[u32]> {
        self.row_of[configs.start * self.occurrences..configs.end * self.occurrences]
            .chunks_exact(self.occurrences)
    }

    /// The segment of a row.
    pub(super) fn segment<'a>(&self, row: u32, graph: &'a SegmentedGraph) -> &'a Segment {
        &graph.segments[self.rows[row as usize].segment]
    }

    /// The local configuration of a row.
    pub(super) fn local(&self, row: u32) -> LocalConfiguration<'_> {
        let Row { segment, local } = self.rows[row as usize];
        match &self.locals {
            Locals::Layout(segments) => LocalConfiguration::Layout(segments[segment].get(local)),
            Locals::Tile(tiles) => LocalConfiguration::Tile(&tiles[local]),
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{FEATURES, Graph, GraphArrays, Limits, Pad, Task, TileConfiguration};

    use super::*;

    /// Three convolutions, each with a producer: the first two equal, the third of another kind.
    fn graph() -> SegmentedGraph {
        let opcodes = vec![1, 26, 1, 26, 2, 26];
        let features = vec![0.0; opcodes.len() * FEATURES];
        let edges = vec![[1, 0], [3, 2], [5, 4]];
        let arrays =
            GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &Limits::default()).unwrap();
        SegmentedGraph::new(&Graph::new(Task::Layout, arrays, vec![1, 3, 5]).unwrap())
    }

    fn layouts(configs: &[[u32; 3]]) -> Configurations {
        let mut builder = hlorank_graph::LayoutBatchBuilder::new(3, Limits::default());
        for config in configs {
            builder
                .push(&config.map(|number| LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap()))
                .unwrap();
        }
        Configurations::Layout(builder.build().unwrap())
    }

    #[test]
    fn rows_are_shared_between_configurations_and_equal_segments() {
        let plan = Plan::new(&graph(), &layouts(&[[7, 8, 9], [8, 7, 9], [7, 8, 9]])).unwrap();
        let expected = Reuse {
            configs: 3,
            distinct_configs: 2,
            segment_rows: 9,
            distinct_segment_rows: 3,
            rows_evaluated: 2,
        };
        assert_eq!(plan.reuse(2), expected);
        assert_eq!(plan.distinct.of_item, [0, 1, 0]);
        assert_eq!(plan.row_of, [0, 1, 2, 1, 0, 2]);
    }

    #[test]
    fn tiles_with_equal_features_are_one() {
        let arrays =
            GraphArrays::from_features(vec![1], vec![0.0; FEATURES], vec![], Pad::Zero, &Limits::default());
        let kernel = SegmentedGraph::new(&Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap());
        let mut batch = TileBatch::default();
        for bounds in [[4, 8], [8, 4], [4, 8]] {
            let tile = TileConfiguration { kernel_bounds: &[], output_bounds: &bounds, input_bounds: &[] };
            batch.push(tile, &Limits::default()).unwrap();
        }
        let plan = Plan::new(&kernel, &Configurations::Tile(batch)).unwrap();
        assert_eq!(plan.distinct.of_item, [0, 1, 0]);
        assert_eq!(plan.rows, [Row { segment: 0, local: 0 }, Row { segment: 0, local: 1 }]);
    }
}
