use crate::{
    Segment, SegmentedGraph,
    configuration::{
        ConfigValues,
        rows::{FoundRows, LocalConfigurations, Row, RowFinder, TooManyRows},
    },
};

use super::NodeFeatureBatch;

/// Finds no rows of segments: only whole-graph models score graphs of feature sets, which are not cut.
pub(super) struct NoRows(pub(super) NodeFeatureBatch);

impl RowFinder for NoRows {
    fn configs(&self) -> usize {
        self.0.len()
    }

    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        found
            .add_config(graph, |config| self.0.numbers(config))
            .map(|_| ())
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        self
    }
}

impl LocalConfigurations for NoRows {
    fn hash(&self, _: Row, _: &mut blake3::Hasher) {}

    fn write(&self, _: Row, _: &Segment, _: usize, _: &mut ConfigValues) {}
}
