//! The two forms of a tile batch on the wire, equal in meaning.

use hlorank_proto::v1::{PackedTileConfigs, TileConfig, TileConfigs};

use super::{
    TileBatch, TileConfiguration,
    batch::{MAX_BOUNDS, check_configs, too_many_bounds},
};
use crate::{ConfigurationError, Limits};

impl TileBatch {
    /// Reads the readable form.
    pub fn from_readable(message: &TileConfigs, limits: &Limits) -> Result<Self, ConfigurationError> {
        check_configs(message.configs.len(), limits)?;
        let mut batch = Self::default();
        message.configs.iter().try_for_each(|config| batch.push(config.into(), limits))?;
        Ok(batch)
    }

    /// Writes the readable form.
    #[must_use]
    pub fn to_readable(&self) -> TileConfigs {
        let config = |tile: TileConfiguration<'_>| TileConfig {
            kernel_bounds: tile.kernel_bounds.to_vec(),
            output_bounds: tile.output_bounds.to_vec(),
            input_bounds: tile.input_bounds.to_vec(),
        };
        TileConfigs { configs: self.iter().map(config).collect() }
    }

    /// Reads the packed form.
    pub fn from_packed(message: &PackedTileConfigs, limits: &Limits) -> Result<Self, ConfigurationError> {
        let configs = message.config_count as usize;
        check_configs(configs, limits)?;
        let counts = [message.kernel_bound_count, message.output_bound_count, message.input_bound_count];
        let counts = counts.map(|count| count as usize);
        if let Some(&found) = counts.iter().find(|count| **count > MAX_BOUNDS) {
            return Err(too_many_bounds(0, found));
        }
        let width: usize = counts.iter().sum();
        let expected = configs * width * size_of::<i32>();
        if message.bounds.len() != expected {
            let what = "the matrix of bounds (in bytes)".to_owned();
            return Err(ConfigurationError::WrongCount { what, found: message.bounds.len(), expected });
        }
        let (quads, _) = message.bounds.as_chunks::<4>();
        let bounds = quads.iter().map(|quad| i32::from_le_bytes(*quad).into()).collect();
        let [kernel, output, _] = counts;
        let ends = (0..configs).map(|config| config * width);
        let ends = ends.map(|start| [start + kernel, start + kernel + output, start + width]).collect();
        Ok(Self { bounds, ends })
    }

    /// Writes the packed form. Returns `None` if tiles differ in their numbers of bounds or a bound does not fit `i32`; only
    /// the readable form can hold such tiles.
    #[must_use]
    pub fn to_packed(&self) -> Option<PackedTileConfigs> {
        let counts = |tile: TileConfiguration<'_>| tile.lists().map(<[i64]>::len);
        let first = counts(self.iter().next()?);
        if !self.iter().all(|tile| counts(tile) == first) {
            return None;
        }
        let bounds = self.bounds.iter().map(|&bound| i32::try_from(bound).ok());
        let bounds: Vec<[u8; 4]> = bounds.map(|bound| Some(bound?.to_le_bytes())).collect::<Option<_>>()?;
        let [kernel, output, input] = first.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Some(PackedTileConfigs {
            config_count: u32::try_from(self.len()).ok()?,
            kernel_bound_count: kernel,
            output_bound_count: output,
            input_bound_count: input,
            bounds: bounds.as_flattened().to_vec().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::configuration::tile::batch::tests::batch;

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
                prop_assert_eq!(tile.lists().map(<[i64]>::to_vec), original.clone());
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_packed_form_is_not_packed() {
        assert_eq!(batch(&[[vec![1 << 40], vec![], vec![]]]).to_packed(), None);
        assert_eq!(batch(&[[vec![1], vec![], vec![]], [vec![], vec![1], vec![]]]).to_packed(), None);
    }

    #[test]
    fn a_matrix_of_the_wrong_size_is_refused() {
        let packed = PackedTileConfigs { config_count: 2, output_bound_count: 1, ..Default::default() };
        let refused = TileBatch::from_packed(&packed, &Limits::default());
        assert!(matches!(refused, Err(ConfigurationError::WrongCount { found: 0, expected: 8, .. })));
    }
}
