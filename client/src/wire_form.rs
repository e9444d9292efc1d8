//! The wire forms of configurations: selects one, counts its configurations, and splits it into batches. A new kind of
//! configuration is one arm of each `match`.

use hlorank_graph::Configurations;
use hlorank_proto::v1::{
    DeltaLayoutConfigs, LayoutConfigs, PackedLayoutConfigs, PackedTileConfigs, TileConfigs,
    config_batch::Configs,
};

/// Maximum size of a change in bytes, unless tables are huge. A packed entry has one or two bytes.
const CHANGE_BYTES: usize = 4;

/// Returns the smallest wire form: layouts as changes to the first one if there are few, as in a step of a search, and
/// otherwise packed; tiles packed if possible, otherwise readable.
pub(crate) fn smallest_form(configurations: &Configurations) -> Configs {
    match configurations {
        Configurations::Layout(batch) if batch.changes() * CHANGE_BYTES < batch.len() * batch.slots() => {
            Configs::DeltaLayoutConfigs(batch.to_delta())
        }
        Configurations::Layout(batch) => Configs::PackedLayoutConfigs(batch.to_packed()),
        Configurations::Tile(batch) => match batch.to_packed() {
            Some(packed) => Configs::PackedTileConfigs(packed),
            None => Configs::TileConfigs(batch.to_readable()),
        },
    }
}

/// Returns the number of configurations.
pub(crate) fn count(configs: &Configs) -> usize {
    match configs {
        Configs::LayoutConfigs(message) => message.configs.len(),
        Configs::PackedLayoutConfigs(message) => message.config_count as usize,
        Configs::DeltaLayoutConfigs(message) => message.change_counts.len(),
        Configs::TileConfigs(message) => message.configs.len(),
        Configs::PackedTileConfigs(message) => message.config_count as usize,
    }
}

/// Splits configurations into batches of `size` in their order. The last batch may have fewer.
pub(crate) fn batches(configs: &Configs, size: usize) -> Vec<Configs> {
    let size = size.max(1);
    match configs {
        Configs::LayoutConfigs(all) => {
            let batch = |configs: &[_]| LayoutConfigs { configs: configs.to_vec() };
            all.configs.chunks(size).map(batch).map(Configs::LayoutConfigs).collect()
        }
        Configs::TileConfigs(all) => {
            let batch = |configs: &[_]| TileConfigs { configs: configs.to_vec() };
            all.configs.chunks(size).map(batch).map(Configs::TileConfigs).collect()
        }
        Configs::PackedLayoutConfigs(all) => {
            let batch = |(config_count, indices): (u32, &[u8])| PackedLayoutConfigs {
                config_count,
                tables: all.tables.clone(),
                indices: indices.to_vec().into(),
            };
            let rows = rows(&all.indices, all.config_count, size);
            rows.map(batch).map(Configs::PackedLayoutConfigs).collect()
        }
        Configs::PackedTileConfigs(all) => {
            let batch = |(config_count, bounds): (u32, &[u8])| PackedTileConfigs {
                config_count,
                bounds: bounds.to_vec().into(),
                ..*all
            };
            let rows = rows(&all.bounds, all.config_count, size);
            rows.map(batch).map(Configs::PackedTileConfigs).collect()
        }
        Configs::DeltaLayoutConfigs(all) => changes(all, size),
    }
}

/// Splits a matrix of `count` rows into parts of `size` rows, each with its number of rows.
fn rows(matrix: &[u8], count: u32, size: usize) -> impl Iterator<Item = (u32, &[u8])> {
    let width = matrix.len().checked_div(count as usize).unwrap_or_default();
    (0..count as usize).step_by(size).map(move |first| {
        let last = (first + size).min(count as usize);
        (u32::try_from(last - first).unwrap_or(u32::MAX), &matrix[first * width..last * width])
    })
}

fn changes(all: &DeltaLayoutConfigs, size: usize) -> Vec<Configs> {
    let mut first = 0_usize;
    let batch = |counts: &[u32]| {
        let range = first..first + counts.iter().map(|count| *count as usize).sum::<usize>();
        first = range.end;
        // The counts of a recorded call may not match its changes. The server rejects such a batch.
        let part = |numbers: &[u32]| numbers.get(range.clone()).unwrap_or_default().to_vec();
        Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
            tables: all.tables.clone(),
            base: all.base.clone(),
            change_counts: counts.to_vec(),
            change_slots: part(&all.change_slots),
            change_entries: part(&all.change_entries),
        })
    };
    all.change_counts.chunks(size).map(batch).collect()
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{LayoutBatch, LayoutBatchBuilder, LayoutEntry, Limits, TileBatch, TileConfiguration};

    use super::*;

    fn tiles(outputs: &[&[i64]]) -> Configurations {
        let mut batch = TileBatch::default();
        for &output_bounds in outputs {
            let tile = TileConfiguration { kernel_bounds: &[], output_bounds, input_bounds: &[] };
            batch.push(tile, &Limits::default()).unwrap();
        }
        Configurations::Tile(batch)
    }

    #[test]
    fn tiles_are_sent_packed_if_possible() {
        assert!(matches!(smallest_form(&tiles(&[&[1], &[2]])), Configs::PackedTileConfigs(_)));
        assert!(matches!(smallest_form(&tiles(&[&[1], &[2, 3]])), Configs::TileConfigs(_)));
    }

    #[test]
    fn layouts_with_few_changes_are_sent_as_changes() {
        let layouts = |changed: usize| {
            let mut batch = LayoutBatchBuilder::new(40, Limits::default());
            for config in 0..10 {
                let mut entries = vec![LayoutEntry::DEFAULT; 40];
                entries[..changed].fill(LayoutEntry::from_numbers([config, 0, 0], String::new).unwrap());
                batch.push(&entries).unwrap();
            }
            smallest_form(&Configurations::Layout(batch.build().unwrap()))
        };
        assert!(matches!(layouts(3), Configs::DeltaLayoutConfigs(_)));
        assert!(matches!(layouts(30), Configs::PackedLayoutConfigs(_)));
    }

    const SLOTS: usize = 3;
    const SIZES: [usize; 3] = [3, 3, 1];

    fn entry(number: u32) -> LayoutEntry {
        LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap()
    }

    /// Returns one layout per number, each of which changes one node.
    fn layouts(numbers: impl IntoIterator<Item = u32>) -> LayoutBatch {
        let mut batch = LayoutBatchBuilder::new(SLOTS, Limits::default());
        for number in numbers {
            batch.push(&[entry(7), entry(number), entry(9)]).unwrap();
        }
        batch.build().unwrap()
    }

    #[test]
    fn layouts_of_every_form_are_split_into_batches() {
        let (all, nodes) = (layouts(0..7), [4, 5, 6]);
        let expected = [layouts(0..3), layouts(3..6), layouts(6..7)];
        for form in [
            Configs::LayoutConfigs(all.to_readable(&nodes)),
            Configs::PackedLayoutConfigs(all.to_packed()),
            Configs::DeltaLayoutConfigs(all.to_delta()),
        ] {
            let read = |batch: Configs| match batch {
                Configs::LayoutConfigs(batch) => {
                    LayoutBatch::from_readable(&batch, &nodes, &Limits::default())
                }
                Configs::PackedLayoutConfigs(batch) => {
                    LayoutBatch::from_packed(&batch, SLOTS, &Limits::default())
                }
                Configs::DeltaLayoutConfigs(batch) => {
                    LayoutBatch::from_delta(&batch, SLOTS, &Limits::default())
                }
                other => panic!("{other:?}"),
            };
            let read: Vec<LayoutBatch> =
                batches(&form, 3).into_iter().map(|batch| read(batch).unwrap()).collect();
            for (batch, expected) in read.iter().zip(&expected) {
                assert_eq!(batch.to_readable(&nodes), expected.to_readable(&nodes));
            }
            assert_eq!(read.len(), SIZES.len());
        }
    }

    #[test]
    fn tiles_of_every_form_are_split_into_batches() {
        let mut all = TileBatch::default();
        for size in 1..=7 {
            let tile =
                TileConfiguration { kernel_bounds: &[2], output_bounds: &[size, 1], input_bounds: &[] };
            all.push(tile, &Limits::default()).unwrap();
        }
        for form in
            [Configs::TileConfigs(all.to_readable()), Configs::PackedTileConfigs(all.to_packed().unwrap())]
        {
            let read = |batch| match batch {
                Configs::TileConfigs(batch) => TileBatch::from_readable(&batch, &Limits::default()),
                Configs::PackedTileConfigs(batch) => TileBatch::from_packed(&batch, &Limits::default()),
                other => panic!("{other:?}"),
            };
            let read: Vec<TileBatch> =
                batches(&form, 3).into_iter().map(|batch| read(batch).unwrap()).collect();
            assert!(read.iter().map(TileBatch::len).eq(SIZES));
            let outputs = read.iter().flat_map(|batch| batch.iter().map(|tile| tile.output_bounds[0]));
            assert!(outputs.eq(1..=7));
        }
    }
}
