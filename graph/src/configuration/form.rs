//! Batches as the messages that clients send, counted and cut into smaller ones.

use std::{collections::HashMap, ops::Range};

use hlorank_proto::v1::{
    DeltaFusionConfigs, DeltaLayoutConfigs, FusionConfigs, LayoutConfigs, NodeFeatureConfigs,
    PackedFusionConfigs, PackedLayoutConfigs, PackedTileConfigs, ParameterConfigs, TileConfigs,
    config_batch::Configs,
};

use super::checks::to_u32;

/// Returns the number of configurations that a message claims to have.
#[must_use]
pub fn config_count(configs: &Configs) -> usize {
    match configs {
        Configs::LayoutConfigs(message) => message.configs.len(),
        Configs::PackedLayoutConfigs(message) => message.config_count as usize,
        Configs::DeltaLayoutConfigs(message) => message.change_counts.len(),
        Configs::TileConfigs(message) => message.configs.len(),
        Configs::PackedTileConfigs(message) => message.config_count as usize,
        Configs::FusionConfigs(message) => message.configs.len(),
        Configs::PackedFusionConfigs(message) => message.config_count as usize,
        Configs::DeltaFusionConfigs(message) => message.change_counts.len(),
        Configs::NodeFeatureConfigs(message) => message.config_count as usize,
        Configs::ParameterConfigs(message) => message.configs.len(),
    }
}

/// Cuts a message into messages of the same form with at most `size` configurations each, in order.
#[must_use]
pub fn cut_configs(configs: &Configs, size: usize) -> Vec<Configs> {
    let size = size.max(1);
    match configs {
        Configs::LayoutConfigs(message) => chunks(&message.configs, size, |configs| {
            Configs::LayoutConfigs(LayoutConfigs { configs })
        }),
        Configs::TileConfigs(message) => chunks(&message.configs, size, |configs| {
            Configs::TileConfigs(TileConfigs { configs })
        }),
        Configs::FusionConfigs(message) => chunks(&message.configs, size, |configs| {
            Configs::FusionConfigs(FusionConfigs { configs })
        }),
        Configs::ParameterConfigs(message) => chunks(&message.configs, size, |configs| {
            Configs::ParameterConfigs(ParameterConfigs { configs })
        }),
        Configs::PackedLayoutConfigs(message) => {
            // Parts share no message, so each has all tables, which are small beside the indices.
            let part = |(config_count, indices): (u32, &[u8])| PackedLayoutConfigs {
                config_count,
                tables: message.tables.clone(),
                indices: indices.to_vec().into(),
            };
            let parts = cut_rows(&message.indices, message.config_count, size).map(part);
            parts.map(Configs::PackedLayoutConfigs).collect()
        }
        Configs::PackedTileConfigs(message) => {
            let part = |(config_count, bounds): (u32, &[u8])| PackedTileConfigs {
                config_count,
                bounds: bounds.to_vec().into(),
                ..*message
            };
            let parts = cut_rows(&message.bounds, message.config_count, size).map(part);
            parts.map(Configs::PackedTileConfigs).collect()
        }
        Configs::PackedFusionConfigs(message) => {
            let part = |(config_count, fused): (u32, &[u8])| PackedFusionConfigs {
                config_count,
                fused: fused.to_vec().into(),
            };
            let parts = cut_rows(&message.fused, message.config_count, size).map(part);
            parts.map(Configs::PackedFusionConfigs).collect()
        }
        Configs::DeltaLayoutConfigs(message) => {
            let part = |(change_counts, range): (Vec<u32>, Range<usize>)| DeltaLayoutConfigs {
                tables: message.tables.clone(),
                base: message.base.clone(),
                change_counts,
                change_slots: changes_of(&message.change_slots, range.clone()),
                change_entries: changes_of(&message.change_entries, range),
            };
            let parts = cut_changes(&message.change_counts, size).map(part);
            parts.map(Configs::DeltaLayoutConfigs).collect()
        }
        Configs::DeltaFusionConfigs(message) => {
            let part = |(change_counts, range): (Vec<u32>, Range<usize>)| DeltaFusionConfigs {
                base: message.base.clone(),
                change_counts,
                change_slots: changes_of(&message.change_slots, range),
            };
            let parts = cut_changes(&message.change_counts, size).map(part);
            parts.map(Configs::DeltaFusionConfigs).collect()
        }
        Configs::NodeFeatureConfigs(message) => {
            let parts = if message.row_indices.is_empty() {
                cut_dense(message, size)
            } else {
                cut_table(message, size)
            };
            parts.into_iter().map(Configs::NodeFeatureConfigs).collect()
        }
    }
}

fn chunks<T: Clone>(configs: &[T], size: usize, part: impl Fn(Vec<T>) -> Configs) -> Vec<Configs> {
    let parts = configs.chunks(size);
    parts.map(|configs| part(configs.to_vec())).collect()
}

/// Cuts a matrix of `count` rows into parts of at most `size` rows. Returns each part with its number of rows.
fn cut_rows(matrix: &[u8], count: u32, size: usize) -> impl Iterator<Item = (u32, &[u8])> {
    let count = count as usize;
    // A recorded message may claim another number of rows than its matrix has. Its parts do so too,
    // and the server refuses them.
    let width = matrix.len().checked_div(count).unwrap_or_default();
    (0..count).step_by(size).map(move |first| {
        let last = (first + size).min(count);
        let part = &matrix[first * width..last * width];
        (to_u32(last - first), part)
    })
}

/// Cuts the counts of a delta form into parts of at most `size` configurations. Returns each part with the range of its
/// changes.
fn cut_changes(counts: &[u32], size: usize) -> impl Iterator<Item = (Vec<u32>, Range<usize>)> {
    // The changes of all configurations are in one list, so those of a part begin where those of
    // the part before end.
    let mut first = 0_usize;
    counts.chunks(size).map(move |counts| {
        let range = first..first + counts.iter().map(|count| *count as usize).sum::<usize>();
        first = range.end;
        (counts.to_vec(), range)
    })
}

/// Returns the numbers of the changes of a part. A recorded call may hold another number of changes than it counts, which
/// the server refuses.
fn changes_of(numbers: &[u32], range: Range<usize>) -> Vec<u32> {
    numbers.get(range).unwrap_or_default().to_vec()
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

/// Every part has the rows that it uses, in the order of their first use.
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
