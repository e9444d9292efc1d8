use hlorank_proto::v1::config_batch::Configs;

use super::{Configurations, RowFinder};
use crate::{ConfigurationError, Graph, SegmentedGraph, Task};

impl Configurations {
    /// Starts finding the rows of the batch on a graph of its task and slots.
    #[must_use]
    pub fn into_rows(self, graph: &SegmentedGraph) -> Box<dyn RowFinder> {
        self.into_batch().into_rows(graph)
    }

    /// Number of configurations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.batch().count()
    }

    /// Whether there are no configurations.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of columns of a node, if they are of a feature set.
    #[must_use]
    pub fn columns(&self) -> Option<usize> {
        self.batch().columns()
    }

    /// The task that the configurations belong to.
    #[must_use]
    pub fn task(&self) -> Task {
        self.batch().task()
    }

    /// Number of columns of a slot or node in a [row](Self::feature_row); 1 if its values mean the same.
    #[must_use]
    pub fn row_columns(&self) -> usize {
        self.task().kind().row_columns(self.columns())
    }

    /// The row of one configuration in an npz file: the columns of one slot or node after the other.
    #[must_use]
    pub fn feature_row(&self, config: usize) -> Vec<f32> {
        self.batch().feature_row(config)
    }

    /// Checks that XLA accepts the configurations for a graph of their task and slots: layouts list each dimension of a
    /// tensor at most once, and no other; bounds of tiles are at least 1. Every choice of fusions is accepted, and every feature.
    pub fn check(&self, graph: &Graph) -> Result<(), ConfigurationError> {
        self.batch().check(graph)
    }

    /// Writes the wire form that takes the fewest bytes.
    #[must_use]
    pub fn to_smallest_form(&self) -> Configs {
        self.batch().to_smallest_form()
    }

    /// Writes every wire form that can hold the batch; `configurable` holds the node of each slot.
    #[must_use]
    pub fn to_forms(&self, configurable: &[u32]) -> Vec<Configs> {
        self.batch().to_forms(configurable)
    }

    /// Writes one configuration. Configurations of one graph have equal bytes if and only if they are equal.
    #[must_use]
    pub fn canonical(&self, config: usize) -> Vec<u8> {
        self.batch().canonical(config)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{
        FusionBatch, LayoutBatchBuilder, LayoutEntry, Limits, NodeFeatureBatch, TileBatch,
        TileConfiguration,
    };

    fn round_trip(configurations: &Configurations) -> Configurations {
        let bytes: Vec<Vec<u8>> = (0..configurations.len())
            .map(|each| configurations.canonical(each))
            .collect();
        let bytes = bytes.iter().map(Vec::as_slice);
        Configurations::from_canonical(configurations.task(), bytes, &Limits::default()).unwrap()
    }

    proptest! {
        #[test]
        fn tiles_come_back(tiles in vec([vec(any::<i64>(), 0..4), vec(any::<i64>(), 0..4), vec(any::<i64>(), 0..4)], 1..6)) {
            let mut batch = TileBatch::default();
            for [kernel_bounds, output_bounds, input_bounds] in &tiles {
                let tile = TileConfiguration { kernel_bounds, output_bounds, input_bounds };
                batch.push(tile, &Limits::default()).unwrap();
            }
            let all = Configurations::Tile(batch);
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn layouts_come_back(layouts in vec(vec(proptest::array::uniform3(0_u32..117_649), 3), 1..6)) {
            let mut builder = LayoutBatchBuilder::new(3, Limits::default());
            for layout in &layouts {
                let entry = |numbers: &[u32; 3]| LayoutEntry::from_numbers(*numbers, String::new).unwrap();
                builder.push(&layout.iter().map(entry).collect::<Vec<_>>()).unwrap();
            }
            let all = Configurations::Layout(builder.build().unwrap());
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn fusions_come_back(fused in vec(vec(any::<bool>(), 11), 1..6)) {
            let all = Configurations::Fusion(FusionBatch::from_bits(11, &fused, &Limits::default()).unwrap());
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn columns_of_a_feature_set_come_back(rows in vec(vec(-9.0_f32..9.0, 6), 1..6)) {
            let batch = NodeFeatureBatch::from_values([2, 3], &rows.concat(), &Limits::default()).unwrap();
            let all = Configurations::FeatureSet(batch);
            prop_assert_eq!(round_trip(&all), all);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..40)) {
            for task in Task::ALL {
                let read = Configurations::from_canonical(task, [bytes.as_slice()], &Limits::default());
                // A varint may have zeros at its end, so equal configurations are all that can be asked for.
                if let Ok(read) = read {
                    prop_assert_eq!(&round_trip(&read), &read);
                }
            }
        }
    }

    #[test]
    fn nothing_is_no_batch() {
        for task in Task::ALL {
            let read = Configurations::from_canonical(task, [], &Limits::default());
            assert_eq!(read, Err(ConfigurationError::Empty));
        }
    }
}
