use crate::{
    Segment, SegmentedGraph,
    configuration::{
        ConfigValues,
        rows::{FoundRows, LocalConfigurations, Row, RowFinder, TooManyRows},
        slices::SliceSet,
    },
};

use super::NodeFeatureBatch;

/// Distinct rows of columns, by their bits.
pub(super) struct DistinctRows {
    known: SliceSet<u32>,
    bits: Vec<u32>,
}

impl DistinctRows {
    pub(super) fn new(columns: usize) -> Self {
        Self { known: SliceSet::new(columns), bits: Vec::with_capacity(columns) }
    }

    /// Returns the number of a row.
    pub(super) fn insert(&mut self, row: &[f32]) -> u32 {
        self.bits.clear();
        self.bits.extend(row.iter().map(|value| value.to_bits()));
        self.known.insert(&self.bits).0
    }

    /// Returns the rows by number.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.known.into_flat().into_iter().map(f32::from_bits).collect()
    }
}

/// Finds no rows of segments: only whole-graph models score graphs of feature sets, which are not cut.
pub(super) struct NoRows(pub(super) NodeFeatureBatch);

impl RowFinder for NoRows {
    fn configs(&self) -> usize {
        self.0.len()
    }

    fn find_next(&mut self, graph: &SegmentedGraph, found: &mut FoundRows) -> Result<(), TooManyRows> {
        found.add_config(graph, |config| self.0.numbers(config)).map(|_| ())
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        self
    }
}

impl LocalConfigurations for NoRows {
    fn hash(&self, _: Row, _: &mut blake3::Hasher) {}

    fn write(&self, _: Row, _: &Segment, _: usize, _: &mut ConfigValues) {}
}
