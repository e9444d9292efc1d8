//! Writes the two forms of a tile batch, which are equal in meaning.

use hlorank_proto::v1::{PackedTileConfigs, TileConfig, TileConfigs};

use super::{Tile, TileBatch};

impl TileBatch {
    /// Writes the readable form.
    #[must_use]
    pub fn to_readable(&self) -> TileConfigs {
        let config = |tile: Tile| {
            let [kernel_bounds, output_bounds, input_bounds] =
                tile.view().lists().map(<[i64]>::to_vec);
            TileConfig {
                kernel_bounds,
                output_bounds,
                input_bounds,
            }
        };
        TileConfigs {
            configs: self.iter().map(config).collect(),
        }
    }

    /// Writes the packed form. Returns `None` if tiles differ in their numbers of bounds or a bound does not fit `i32`; only
    /// the readable form can hold such tiles.
    #[must_use]
    pub fn to_packed(&self) -> Option<PackedTileConfigs> {
        let counts = bound_counts(&self.iter().next()?);
        let bounds = self.packed_bounds(counts)?;
        let [kernel, output, input] = counts.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Some(PackedTileConfigs {
            config_count: u32::try_from(self.len()).ok()?,
            kernel_bound_count: kernel,
            output_bound_count: output,
            input_bound_count: input,
            bounds: bounds.into(),
        })
    }

    /// Returns the matrix of bounds; `None` if a tile has other numbers of bounds, or a bound is
    /// too large.
    fn packed_bounds(&self, counts: [usize; 3]) -> Option<Vec<u8>> {
        let mut bounds = Vec::new();
        for tile in self.iter() {
            if bound_counts(&tile) != counts {
                return None;
            }
            for &bound in tile.view().lists().into_iter().flatten() {
                bounds.extend(i32::try_from(bound).ok()?.to_le_bytes());
            }
        }
        Some(bounds)
    }
}

fn bound_counts(tile: &Tile) -> [usize; 3] {
    tile.view().lists().map(<[i64]>::len)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{ConfigurationError, Limits, configuration::tile::batch::tests::batch};

    proptest! {
        #[test]
        fn every_form_gives_the_batch_back(
            kernel in vec(vec(0_i64..1000, 2), 3), output in vec(vec(0_i64..1000, 4), 3), input in vec(vec(-1_i64..5, 1), 3)
        ) {
            let tiles: Vec<_> = (0..3).map(|i| [kernel[i].clone(), output[i].clone(), input[i].clone()]).collect();
            let batch = batch(&tiles);
            let limits = Limits::default();
            prop_assert_eq!(&TileBatch::from_readable(&batch.to_readable(), &limits).unwrap(), &batch);
            prop_assert_eq!(&TileBatch::from_packed(&batch.to_packed().unwrap(), &limits).unwrap(), &batch);
        }

        #[test]
        fn lists_of_any_length_stay_apart(tiles in vec([vec(any::<i64>(), 0..5), vec(any::<i64>(), 0..5), vec(any::<i64>(), 0..5)], 1..6)) {
            let batch = batch(&tiles);
            let read = TileBatch::from_readable(&batch.to_readable(), &Limits::default()).unwrap();
            for (tile, original) in read.iter().zip(&tiles) {
                prop_assert_eq!(tile.view().lists().map(<[i64]>::to_vec), original.clone());
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_packed_form_is_not_packed() {
        assert_eq!(batch(&[[vec![1 << 40], vec![], vec![]]]).to_packed(), None);
        assert_eq!(
            batch(&[[vec![1], vec![], vec![]], [vec![], vec![1], vec![]]]).to_packed(),
            None
        );
    }

    #[test]
    fn a_matrix_of_the_wrong_size_is_refused() {
        let packed = PackedTileConfigs {
            config_count: 2,
            output_bound_count: 1,
            ..Default::default()
        };
        let refused = TileBatch::from_packed(&packed, &Limits::default());
        assert!(matches!(
            refused,
            Err(ConfigurationError::WrongCount {
                found: 0,
                expected: 8,
                ..
            })
        ));
    }
}
