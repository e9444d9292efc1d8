use hlorank_proto::v1::config_batch::Configs;

use super::count::to_u32;

/// The configurations of a message that a client sends.
pub trait Form {
    /// Number of configurations that the message claims to have.
    fn count(&self) -> usize;

    /// Cuts the message into messages of the same form with at most `size` configurations each, in order.
    fn cut(&self, size: usize) -> Vec<Configs>;
}

/// Cuts a matrix of `count` rows into parts of at most `size` rows. Returns each part with its number of rows.
pub(super) fn cut_rows(
    matrix: &[u8],
    count: u32,
    size: usize,
) -> impl Iterator<Item = (u32, &[u8])> {
    let size = size.max(1);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Configurations, LayoutBatch, LayoutBatchBuilder, LayoutEntry, Limits, TileBatch,
        TileConfiguration, form,
    };

    fn tiles(outputs: &[&[i64]]) -> Configurations {
        let mut batch = TileBatch::default();
        for &output_bounds in outputs {
            let tile = TileConfiguration {
                kernel_bounds: &[],
                output_bounds,
                input_bounds: &[],
            };
            batch.push(tile, &Limits::default()).unwrap();
        }
        Configurations::Tile(batch)
    }

    #[test]
    fn tiles_are_sent_packed_if_possible() {
        assert!(matches!(
            tiles(&[&[1], &[2]]).to_smallest_form(),
            Configs::PackedTileConfigs(_)
        ));
        assert!(matches!(
            tiles(&[&[1], &[2, 3]]).to_smallest_form(),
            Configs::TileConfigs(_)
        ));
    }

    #[test]
    fn layouts_with_few_changes_are_sent_as_changes() {
        let layouts = |changed: usize| {
            let mut batch = LayoutBatchBuilder::new(40, Limits::default());
            for config in 0..10 {
                let mut entries = vec![LayoutEntry::DEFAULT; 40];
                entries[..changed]
                    .fill(LayoutEntry::from_numbers([config, 0, 0], String::new).unwrap());
                batch.push(&entries).unwrap();
            }
            Configurations::Layout(batch.build().unwrap()).to_smallest_form()
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
        for whole in [
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
            let read: Vec<LayoutBatch> = form(&whole)
                .unwrap()
                .cut(3)
                .into_iter()
                .map(|batch| read(batch).unwrap())
                .collect();
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
            let tile = TileConfiguration {
                kernel_bounds: &[2],
                output_bounds: &[size, 1],
                input_bounds: &[],
            };
            all.push(tile, &Limits::default()).unwrap();
        }
        for whole in [
            Configs::TileConfigs(all.to_readable()),
            Configs::PackedTileConfigs(all.to_packed().unwrap()),
        ] {
            let read = |batch| match batch {
                Configs::TileConfigs(batch) => TileBatch::from_readable(&batch, &Limits::default()),
                Configs::PackedTileConfigs(batch) => {
                    TileBatch::from_packed(&batch, &Limits::default())
                }
                other => panic!("{other:?}"),
            };
            let read: Vec<TileBatch> = form(&whole)
                .unwrap()
                .cut(3)
                .into_iter()
                .map(|batch| read(batch).unwrap())
                .collect();
            assert!(read.iter().map(TileBatch::len).eq(SIZES));
            let outputs = read
                .iter()
                .flat_map(|batch| batch.iter().map(|tile| tile.view().output_bounds[0]));
            assert!(outputs.eq(1..=7));
        }
    }
}
