//! Batches of node features as messages hold them.

use std::collections::HashMap;

use hlorank_proto::v1::{NodeFeatureConfigs, ParameterConfigs, config_batch::Configs};

use crate::configuration::{Form, form::cut_rows};

impl Form for NodeFeatureConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
    }

    /// Every part of a table has the rows that it uses, in the order of their first use.
    fn cut(&self, size: usize) -> Vec<Configs> {
        let parts = if self.row_indices.is_empty() {
            cut_dense(self, size)
        } else {
            cut_table(self, size)
        };
        parts.into_iter().map(Configs::NodeFeatureConfigs).collect()
    }
}

fn cut_dense(message: &NodeFeatureConfigs, size: usize) -> Vec<NodeFeatureConfigs> {
    let part = |(config_count, features): (u32, &[u8])| NodeFeatureConfigs {
        config_count,
        features: features.to_vec().into(),
        column_count: message.column_count,
        ..NodeFeatureConfigs::default()
    };
    cut_rows(&message.features, message.config_count, size)
        .map(part)
        .collect()
}

fn cut_table(message: &NodeFeatureConfigs, size: usize) -> Vec<NodeFeatureConfigs> {
    // A part with the whole table could be larger than the message that it is a part of.
    let part = |(config_count, indices): (u32, &[u8])| {
        let (rows, indices) = used_rows(&message.rows, message.column_count, indices);
        NodeFeatureConfigs {
            config_count,
            rows: rows.into(),
            row_indices: indices.into(),
            column_count: message.column_count,
            ..NodeFeatureConfigs::default()
        }
    };
    cut_rows(&message.row_indices, message.config_count, size)
        .map(part)
        .collect()
}

impl Form for ParameterConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| {
            Configs::ParameterConfigs(Self {
                configs: configs.to_vec(),
            })
        };
        self.configs.chunks(size).map(part).collect()
    }
}

/// Returns the rows of a table that some indices name, and the indices into them. An index outside the table, which a
/// recorded call may have, stays outside.
fn used_rows(table: &[u8], columns: u32, indices: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let row_bytes = (columns as usize).saturating_mul(size_of::<f32>()).max(1);
    let mut rows = Vec::new();
    let mut numbers = Vec::new();
    let mut number_of_index = HashMap::new();
    let (quads, rest) = indices.as_chunks::<4>();
    for quad in quads {
        let index = u32::from_le_bytes(*quad);
        let first = (index as usize).checked_mul(row_bytes);
        let row = first.and_then(|first| table.get(first..)?.get(..row_bytes));
        let next = u32::try_from(number_of_index.len()).unwrap_or(u32::MAX);
        let number = match row {
            None => u32::MAX,
            Some(row) => *number_of_index.entry(index).or_insert_with(|| {
                rows.extend_from_slice(row);
                next
            }),
        };
        numbers.extend(number.to_le_bytes());
    }
    numbers.extend_from_slice(rest);
    (rows, numbers)
}
