//! Writes the two forms of a batch, which are equal in meaning.

use hlorank_proto::v1::NodeFeatureConfigs;

use super::NodeFeatureBatch;
use crate::configuration::count::to_u32;

impl NodeFeatureBatch {
    /// Writes the dense form.
    #[must_use]
    pub fn to_dense(&self) -> NodeFeatureConfigs {
        let values = (0..self.len()).flat_map(|config| self.values(config));
        let features: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        NodeFeatureConfigs {
            features: features.into(),
            ..self.sizes()
        }
    }

    /// Writes the table of distinct rows.
    #[must_use]
    pub fn to_table(&self) -> NodeFeatureConfigs {
        let rows: Vec<u8> = self
            .rows()
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let numbers = (0..self.len()).flat_map(|config| self.numbers(config));
        let indices: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        NodeFeatureConfigs {
            rows: rows.into(),
            row_indices: indices.into(),
            ..self.sizes()
        }
    }

    fn sizes(&self) -> NodeFeatureConfigs {
        NodeFeatureConfigs {
            config_count: to_u32(self.len()),
            column_count: to_u32(self.columns()),
            ..NodeFeatureConfigs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::config_batch::Configs;
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{Batch as _, Form as _, Limits};

    /// Batches of a few values, so that rows are often equal.
    fn batches() -> impl Strategy<Value = NodeFeatureBatch> {
        (1_usize..6, 1_usize..4, 1_usize..6).prop_flat_map(|(nodes, columns, configs)| {
            let values = vec((-1_i8..2).prop_map(f32::from), configs * nodes * columns);
            values.prop_map(move |values| {
                NodeFeatureBatch::from_values([nodes, columns], &values, &Limits::default())
                    .unwrap()
            })
        })
    }

    fn read(message: &NodeFeatureConfigs, nodes: usize) -> NodeFeatureBatch {
        NodeFeatureBatch::from_message(message, nodes, &Limits::default()).unwrap()
    }

    proptest! {
        #[test]
        fn every_form_gives_the_batch_back(batch in batches()) {
            for message in [batch.to_dense(), batch.to_table()] {
                prop_assert_eq!(&read(&message, batch.nodes()), &batch);
            }
        }

        #[test]
        fn every_form_is_split_into_batches(batch in batches(), size in 1_usize..4) {
            for message in [batch.to_dense(), batch.to_table()] {
                let mut first = 0;
                for part in message.cut(size) {
                    let Configs::NodeFeatureConfigs(part) = part else { panic!("another form") };
                    let part = read(&part, batch.nodes());
                    let numbers: Vec<usize> = (first..first + part.len()).collect();
                    prop_assert_eq!(&part, &batch.select(&numbers));
                    first += part.len();
                }
                prop_assert_eq!(first, batch.len());
            }
        }
    }

    #[test]
    fn the_table_is_sent_if_it_is_smaller() {
        let form = |values: &[f32]| {
            let batch = NodeFeatureBatch::from_values([2, 3], values, &Limits::default()).unwrap();
            let Configs::NodeFeatureConfigs(message) = batch.to_smallest_form() else {
                panic!("another form")
            };
            message
        };
        let different: Vec<f32> = (0..12_u8).map(f32::from).collect();
        assert!(form(&different).rows.is_empty());
        assert!(form(&[1.0; 12]).features.is_empty());
    }
}
