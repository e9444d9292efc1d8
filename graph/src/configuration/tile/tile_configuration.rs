use hlorank_proto::tpu_graphs::TileSizeConfig;

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

/// The bounds of one tile of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    bounds: Vec<i64>,
    /// Ends of the kernel and output bounds.
    ends: [usize; 2],
}

impl Tile {
    pub(super) fn new(bounds: Vec<i64>, ends: [usize; 2]) -> Self {
        Self { bounds, ends }
    }

    /// The tile as a configuration.
    #[must_use]
    pub fn view(&self) -> TileConfiguration<'_> {
        let [kernel_end, output_end] = self.ends;
        TileConfiguration {
            kernel_bounds: &self.bounds[..kernel_end],
            output_bounds: &self.bounds[kernel_end..output_end],
            input_bounds: &self.bounds[output_end..],
        }
    }
}

impl<'a> TileConfiguration<'a> {
    /// Returns the tile of the bounds of the kernel, the output and the input.
    pub(super) fn of([kernel_bounds, output_bounds, input_bounds]: [&'a [i64]; 3]) -> Self {
        Self {
            kernel_bounds,
            output_bounds,
            input_bounds,
        }
    }

    pub(super) fn lists(&self) -> [&'a [i64]; 3] {
        [self.kernel_bounds, self.output_bounds, self.input_bounds]
    }

    /// The 24 features of spec §6: per list six values, sum and product, where an empty list has product 0.
    #[must_use]
    pub fn features(&self) -> [f32; TILE_FEATURES] {
        let mut features = [0.0; TILE_FEATURES];
        for (list, slots) in self.lists().into_iter().zip(features.chunks_exact_mut(8)) {
            // The product of no values would be 1, but TpuGraphs has 0.
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
