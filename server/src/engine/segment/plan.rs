use std::{borrow::Cow, ops::Range};

use hlorank_graph::{
    Configurations, Distinct, FoundRows, Kernel, LocalConfigurations, LoopNest, Row, Segment,
    SegmentFacts, SegmentedGraph, TooManyRows, UnscoredConfig, pace,
};

use crate::outcome::{KernelTime, Reuse, UnscoredConfigs};

/// What has to be evaluated for a batch, each distinct thing once.
pub(super) struct Plan {
    distinct: Distinct,
    /// Rows that differ.
    pub(super) rows: Vec<Row>,
    /// The segments and the local configurations of the rows.
    locals: Box<dyn LocalConfigurations>,
    /// The rows of each distinct configuration, one configuration after the other.
    row_of: Vec<u32>,
    /// Rows that every configuration has beside its own.
    pub(super) common: Vec<u32>,
    /// `[distinct]` where the rows of each distinct configuration end.
    ends: Vec<usize>,
    unscored: Vec<UnscoredConfig>,
}

/// A row as the encoder takes it.
#[derive(Clone, Copy)]
pub(super) struct PlannedRow<'a> {
    pub(super) row: Row,
    pub(super) locals: &'a dyn LocalConfigurations,
    graph: &'a SegmentedGraph,
}

/// Maximum number of configurations between two pauses.
const CONFIGS_PER_PAUSE: usize = 64;

/// Number of rows of configurations between two pauses. To find one takes some tens of nanoseconds, about as long as a pause.
const ROWS_PER_PAUSE: usize = 2048;

impl Plan {
    /// Finds the distinct rows of a batch.
    pub(super) fn new(
        graph: &SegmentedGraph,
        configurations: Configurations,
    ) -> Result<Self, TooManyRows> {
        let configs = configurations.len();
        let mut finder = configurations.into_rows(graph);
        let rows = graph.rows_per_config();
        let mut found = FoundRows::with_capacity(configs, rows);
        let mut ends = Vec::with_capacity(configs);
        let steps = (ROWS_PER_PAUSE / rows.max(1)).clamp(1, CONFIGS_PER_PAUSE);
        for _ in pace::in_steps(steps, 0..configs) {
            finder.find_next(graph, &mut found)?;
            // Only a configuration that differs from all before it adds rows, and so has an end.
            if ends.len() < found.distinct.first.len() {
                ends.push(found.row_of.len());
            }
        }
        let FoundRows {
            distinct,
            rows,
            row_of,
            common,
            unscored,
        } = found;
        Ok(Self {
            distinct,
            rows,
            locals: finder.finish(),
            row_of,
            common,
            ends,
            unscored,
        })
    }

    /// Number of rows of all distinct configurations.
    pub(super) fn rows_of_configs(&self) -> usize {
        self.row_of.len()
    }

    pub(super) fn distinct_configs(&self) -> usize {
        self.ends.len()
    }

    /// Number of bytes that the segments and local configurations hold beside the batch.
    pub(super) fn bytes(&self) -> usize {
        self.locals.bytes()
    }

    /// How much work was shared, if `rows_evaluated` rows were evaluated for this call.
    pub(super) fn reuse(&self, rows_evaluated: usize) -> Reuse {
        Reuse {
            configs: self.distinct.of_config.len(),
            distinct_configs: self.distinct_configs(),
            segment_rows: self
                .distinct
                .of_config
                .iter()
                .map(|&config| self.rows_at(config as usize).len() + self.common.len())
                .sum(),
            distinct_segment_rows: self.rows.len(),
            rows_evaluated,
        }
    }

    /// Returns the score of every configuration, given those of the distinct ones.
    pub(super) fn fan_out(&self, distinct_scores: &[f32]) -> Vec<f32> {
        self.distinct.fan_out(distinct_scores)
    }

    /// Gives the configurations that get no score an infinite one. Returns their number and the first of them.
    pub(super) fn mark_unscored(&self, scores: &mut [f32]) -> Option<UnscoredConfigs> {
        let first = *self.unscored.first()?;
        // Only the first of equal configurations is in the list, so the others are found by the
        // number of the distinct one.
        let mut is_unscored = vec![false; self.distinct_configs()];
        for unscored in &self.unscored {
            is_unscored[self.distinct.of_config[unscored.config] as usize] = true;
        }
        let mut count = 0;
        for (score, &distinct) in scores.iter_mut().zip(&self.distinct.of_config) {
            if is_unscored[distinct as usize] {
                *score = f32::INFINITY;
                count += 1;
            }
        }
        Some(UnscoredConfigs { count, first })
    }

    /// Returns the rows of distinct configurations, one slice each, without those that all have.
    pub(super) fn rows_of(&self, configs: Range<usize>) -> impl Iterator<Item = &[u32]> {
        configs.map(|config| &self.row_of[self.rows_at(config)])
    }

    /// Returns the kernels of a configuration with their scores, given those of all rows. Rows and kernels are both in the
    /// order of roots.
    pub(super) fn timed(
        &self,
        config: usize,
        kernels: &[Kernel],
        seconds: &[f32],
    ) -> Vec<KernelTime> {
        // A configuration that gets no score has neither rows nor kernels.
        let rows = &self.row_of[self.rows_at(self.distinct.of_config[config] as usize)];
        let timed = rows.iter().zip(kernels).map(|(&row, kernel)| KernelTime {
            node: kernel.root,
            computed_nodes: kernel.computed(),
            seconds: seconds[row as usize],
        });
        timed.collect()
    }

    fn rows_at(&self, config: usize) -> Range<usize> {
        config.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[config]
    }

    /// Returns a row with its segment and local configuration.
    pub(super) fn row<'a>(&'a self, row: u32, graph: &'a SegmentedGraph) -> PlannedRow<'a> {
        PlannedRow {
            row: self.rows[row as usize],
            locals: &*self.locals,
            graph,
        }
    }
}

impl<'a> PlannedRow<'a> {
    pub(super) fn facts(&self) -> SegmentFacts {
        self.locals.facts(self.row, self.graph)
    }

    /// The loops of the kernel that the row is of.
    pub(super) fn loops(&self) -> Option<&'a LoopNest> {
        self.graph.loops.as_ref()
    }

    pub(super) fn segment(&self) -> Cow<'a, Segment> {
        self.locals.segment(self.row, self.graph)
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{
        FEATURES, Graph, GraphArrays, Limits, Pad, Task, TileBatch, TileConfiguration,
    };

    use super::*;

    #[test]
    fn tiles_with_equal_features_are_one() {
        let arrays = GraphArrays::from_features(
            vec![1],
            vec![0.0; FEATURES],
            vec![],
            Pad::Zero,
            &Limits::default(),
        );
        let kernel = SegmentedGraph::new(&Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap());
        let mut batch = TileBatch::default();
        for bounds in [[4, 8], [8, 4], [4, 8]] {
            let tile = TileConfiguration {
                kernel_bounds: &[],
                output_bounds: &bounds,
                input_bounds: &[],
            };
            batch.push(tile, &Limits::default()).unwrap();
        }
        let plan = Plan::new(&kernel, Configurations::Tile(batch)).unwrap();
        assert_eq!(plan.distinct.of_config, [0, 1, 0]);
        let rows = plan.rows.iter().map(|row| (row.segment, row.local));
        assert!(rows.eq([(0, 0), (0, 1)]));
    }
}
