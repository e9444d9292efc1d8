use hlorank_proto::{tpu_graphs::TileSizeConfig, v1::TileConfig};

use crate::features::aggregate;

/// Number of features of a tile.
pub const TILE_FEATURES: usize = 24;

/// One tile: bounds per dimension, each list of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileConfiguration<'a> {
    /// Tile of the reduction window.
    pub kernel_bounds: &'a [i64],
    /// Tile of the output.
    pub output_bounds: &'a [i64],
    /// Tile of the input.
    pub input_bounds: &'a [i64],
}

impl TileConfiguration<'_> {
    pub(super) fn lists(&self) -> [&[i64]; 3] {
        [self.kernel_bounds, self.output_bounds, self.input_bounds]
    }

    /// The 24 features of spec §6: per list six values, sum and product, where an empty list has product 0.
    #[must_use]
    pub fn features(&self) -> [f32; TILE_FEATURES] {
        let mut features = [0.0; TILE_FEATURES];
        for (list, slots) in self.lists().into_iter().zip(features.chunks_exact_mut(8)) {
            if !list.is_empty() {
                aggregate(list.iter().copied(), slots);
            }
        }
        features
    }
}

impl<'a> From<&'a TileSizeConfig> for TileConfiguration<'a> {
    fn from(config: &'a TileSizeConfig) -> Self {
        Self {
            kernel_bounds: &config.kernel_bounds,
            output_bounds: &config.output_bounds,
            input_bounds: &config.input_bounds,
        }
    }
}

impl<'a> From<&'a TileConfig> for TileConfiguration<'a> {
    fn from(config: &'a TileConfig) -> Self {
        Self {
            kernel_bounds: &config.kernel_bounds,
            output_bounds: &config.output_bounds,
            input_bounds: &config.input_bounds,
        }
    }
}
