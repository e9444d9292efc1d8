use std::{ops::Range, time::Instant};

use hlorank_graph::{
    Configurations, LayoutBatch, LayoutEntry, Segment, SegmentedGraph, TILE_FEATURES, TileBatch,
};

use super::{as_u32, distinct::Distinct, layout_rows::LayoutRows, slices::SliceSet};
use crate::outcome::Reuse;

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

/// Finds the plan of a batch, some configurations at a time.
pub(super) struct Planner {
    distinct: Distinct,
    found: Found,
    row_of: Vec<u32>,
}

/// A batch, and the rows found until now.
enum Found {
    Layout { batch: LayoutBatch, rows: LayoutRows },
    Tile { batch: TileBatch, rows: Vec<Row>, locals: Vec<[f32; TILE_FEATURES]> },
}

/// Configurations between two looks at the clock.
const AT_ONCE: usize = 64;

impl Planner {
    pub(super) fn new(graph: &SegmentedGraph, configurations: Configurations) -> Self {
        let found = match configurations {
            Configurations::Layout(batch) => Found::Layout { batch, rows: LayoutRows::new(graph) },
            Configurations::Tile(batch) => Found::Tile { batch, rows: Vec::new(), locals: Vec::new() },
        };
        Self { distinct: Distinct::default(), found, row_of: Vec::new() }
    }

    /// Goes on until then, or a little longer; returns whether every configuration was looked at. The graph is always
    /// the same.
    pub(super) fn go_on(&mut self, graph: &SegmentedGraph, until: Instant) -> Result<bool, TooManyRows> {
        loop {
            let left = self.found.configs() - self.distinct.of_config.len();
            for _ in 0..left.min(AT_ONCE) {
                self.look_at_next(graph)?;
            }
            if left <= AT_ONCE {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
        }
    }

    fn look_at_next(&mut self, graph: &SegmentedGraph) -> Result<(), TooManyRows> {
        let Self { distinct, found, row_of } = self;
        let (config, before) = (distinct.of_config.len(), distinct.first.last().copied());
        let is_new = match found {
            Found::Layout { batch, .. } => distinct.add_layout(batch),
            Found::Tile { batch, .. } => distinct.add_tile(batch),
        };
        if !is_new {
            return Ok(());
        }
        if distinct.first.len().saturating_mul(graph.occurrences.len()) > MAX_ROWS_OF_CONFIGS {
            return Err(TooManyRows);
        }
        match found {
            Found::Layout { batch, rows } => rows.append(graph, batch, config, before, row_of),
            Found::Tile { batch, rows, locals } => {
                let (first, local) = (rows.len(), locals.len());
                let segments = 0..graph.segments.len();
                if first + segments.len() > MAX_ROWS {
                    return Err(TooManyRows);
                }
                locals.push(batch.get(config).features());
                rows.extend(segments.map(|segment| Row { segment, local }));
                row_of.extend(graph.occurrences.iter().map(|occurrence| as_u32(first + occurrence.segment)));
                Ok(())
            }
        }
    }

    /// What was found.
    pub(super) fn finish(self, graph: &SegmentedGraph) -> Plan {
        let (rows, locals) = match self.found {
            Found::Layout { rows, .. } => {
                let (rows, locals) = rows.finish();
                (rows, Locals::Layout(locals))
            }
            Found::Tile { rows, locals, .. } => (rows, Locals::Tile(locals)),
        };
        let Self { distinct, row_of, .. } = self;
        Plan { distinct, rows, locals, row_of, occurrences: graph.occurrences.len() }
    }
}

impl Found {
    fn configs(&self) -> usize {
        match self {
            Self::Layout { batch, .. } => batch.len(),
            Self::Tile { batch, .. } => batch.len(),
        }
    }
}

impl Plan {
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
            configs: self.distinct.of_config.len(),
            distinct_configs: self.distinct_configs(),
            segment_rows: self.distinct.of_config.len() * self.occurrences,
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
    use std::time::Duration;

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

    fn plan(graph: &SegmentedGraph, configurations: Configurations) -> Plan {
        let mut planner = Planner::new(graph, configurations);
        assert!(planner.go_on(graph, Instant::now() + Duration::from_mins(1)).unwrap());
        planner.finish(graph)
    }

    #[test]
    fn rows_are_shared_between_configurations_and_equal_segments() {
        let plan = plan(&graph(), layouts(&[[7, 8, 9], [8, 7, 9], [7, 8, 9]]));
        let expected = Reuse {
            configs: 3,
            distinct_configs: 2,
            segment_rows: 9,
            distinct_segment_rows: 3,
            rows_evaluated: 2,
        };
        assert_eq!(plan.reuse(2), expected);
        assert_eq!(plan.distinct.of_config, [0, 1, 0]);
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
        let plan = plan(&kernel, Configurations::Tile(batch));
        assert_eq!(plan.distinct.of_config, [0, 1, 0]);
        assert_eq!(plan.rows, [Row { segment: 0, local: 0 }, Row { segment: 0, local: 1 }]);
    }

    #[test]
    fn a_plan_is_the_same_however_often_it_is_interrupted() {
        let configs: Vec<_> = (0..1000).map(|number| [number % 7, number % 5, number % 3]).collect();
        let mut planner = Planner::new(&graph(), layouts(&configs));
        let now = Instant::now();
        let turns = (1..=1000).find(|_| planner.go_on(&graph(), now).unwrap());
        assert_eq!(turns, Some(1000_usize.div_ceil(AT_ONCE)));
        let (interrupted, whole) = (planner.finish(&graph()), plan(&graph(), layouts(&configs)));
        assert_eq!(interrupted.distinct.of_config, whole.distinct.of_config);
        assert_eq!((interrupted.rows, interrupted.row_of), (whole.rows, whole.row_of));
        assert_eq!(interrupted.distinct.first.len(), 105);
    }
}
