//! Writes the readable and the packed form of a layout batch, which are equal in meaning.

use hlorank_proto::v1::{
    LayoutConfig, LayoutConfigs, LayoutTable, NodeLayout, PackedLayoutConfigs, TensorLayout,
};

use super::{LayoutBatch, batch::index_width};
use crate::configuration::count::to_u32;

impl LayoutBatch {
    /// Writes the readable form; it leaves out nodes that keep the compiler's default.
    #[must_use]
    pub fn to_readable(&self, configurable: &[u32]) -> LayoutConfigs {
        let config = |config| {
            let slots = configurable.iter().enumerate();
            let nodes = slots.map(|(slot, &node)| self.node_layout(config, slot, node));
            LayoutConfig {
                // An entry without tensors is the default, which a node that is not named has.
                nodes: nodes.filter(|node| !node.tensors.is_empty()).collect(),
            }
        };
        LayoutConfigs {
            configs: (0..self.len()).map(config).collect(),
        }
    }

    fn node_layout(&self, config: usize, slot: usize, node: u32) -> NodeLayout {
        let tensors = self.entry(config, slot).tensors().into_iter();
        let tensors = tensors.map(|minor_to_major| TensorLayout { minor_to_major });
        NodeLayout {
            node,
            tensors: tensors.collect(),
        }
    }

    /// Writes the packed form.
    #[must_use]
    pub fn to_packed(&self) -> PackedLayoutConfigs {
        let lengths = (0..self.slots()).map(|slot| self.table(slot).len());
        // The matrix is copied as a whole; going through its slots takes ten times as long.
        let indices: Vec<u8> = match index_width(lengths) {
            1 => self
                .indices()
                .iter()
                .map(|index| index.to_le_bytes()[0])
                .collect(),
            _ => self
                .indices()
                .iter()
                .flat_map(|index| index.to_le_bytes())
                .collect(),
        };
        PackedLayoutConfigs {
            config_count: to_u32(self.len()),
            tables: self.write_tables(),
            indices: indices.into(),
        }
    }

    pub(super) fn write_tables(&self) -> Vec<LayoutTable> {
        let table = |slot| {
            self.table(slot)
                .iter()
                .flat_map(|entry| entry.numbers())
                .collect()
        };
        (0..self.slots())
            .map(|slot| LayoutTable {
                entries: table(slot),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{LayoutBatchBuilder, LayoutEntry, Limits};

    fn batches() -> impl Strategy<Value = (LayoutBatch, Vec<u32>)> {
        let entry = proptest::array::uniform18(-1_i32..=5);
        (1_usize..5, 1_usize..9).prop_flat_map(move |(slots, configs)| {
            let config = proptest::collection::vec(entry.clone(), slots);
            let nodes = Just((0..).step_by(3).take(slots).collect::<Vec<u32>>()).prop_shuffle();
            (
                proptest::collection::vec(config, configs).prop_map(build),
                nodes,
            )
        })
    }

    fn build(configs: Vec<Vec<[i32; 18]>>) -> LayoutBatch {
        let mut builder = LayoutBatchBuilder::new(configs[0].len(), Limits::default());
        for config in configs {
            let entries = config
                .iter()
                .map(|values| LayoutEntry::from_values(values, String::new).unwrap());
            builder.push(&entries.collect::<Vec<_>>()).unwrap();
        }
        builder.build().unwrap()
    }

    proptest! {
        #[test]
        fn every_form_gives_the_batch_back((batch, configurable) in batches()) {
            let limits = Limits::default();
            let readable = batch.to_readable(&configurable);
            prop_assert_eq!(&LayoutBatch::from_readable(&readable, &configurable, &limits).unwrap(), &batch);
            let packed = batch.to_packed();
            prop_assert_eq!(&LayoutBatch::from_packed(&packed, batch.slots(), &limits).unwrap(), &batch);
            let delta = batch.to_delta();
            prop_assert_eq!(&LayoutBatch::from_delta(&delta, batch.slots(), &limits).unwrap(), &batch);
        }
    }

    #[test]
    fn tables_past_a_byte_take_two_bytes_an_index() {
        let configs = (0..300)
            .map(|config| vec![std::array::from_fn(|value| (config >> value) % 2)])
            .collect();
        let batch = build(configs);
        let packed = batch.to_packed();
        assert_eq!(packed.indices.len(), 600);
        assert_eq!(
            LayoutBatch::from_packed(&packed, 1, &Limits::default()).unwrap(),
            batch
        );
    }
}
