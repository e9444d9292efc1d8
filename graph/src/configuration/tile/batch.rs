use hlorank_proto::tpu_graphs::TileSizeConfig;
use prost::encoding::{decode_varint, encode_varint};

use crate::{
    ConfigurationError, Limits,
    configuration::checks::{check_size, to_u32},
    features::aggregate,
};

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
    /// The tile as a configuration.
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
    pub(super) fn new([kernel_bounds, output_bounds, input_bounds]: [&'a [i64]; 3]) -> Self {
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

/// Maximum number of bounds in one list of a tile.
const MAX_BOUNDS: usize = 64;

/// Tile configurations of one kernel. They are kept encoded, because decoded bounds would take many times the memory of
/// the message that they came in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileBatch {
    /// Per tile: a byte whose bits say which lists have bounds, then for each of these its length and its bounds as
    /// varints.
    encoded: Vec<u8>,
    /// Where each tile ends.
    ends: Vec<u32>,
}

impl TileBatch {
    /// Adds a tile.
    pub fn push(
        &mut self,
        tile: TileConfiguration<'_>,
        limits: &Limits,
    ) -> Result<(), ConfigurationError> {
        // A tile has no slots: the limit on entries is for kinds that have.
        check_size(self.len() + 1, 0, limits)?;
        let lists = tile.lists();
        for list in lists {
            check_bounds(self.len(), list.len())?;
        }
        let bit = |list: usize| u8::from(!lists[list].is_empty()) << list;
        self.encoded.push(bit(0) | bit(1) | bit(2));
        for list in lists.into_iter().filter(|list| !list.is_empty()) {
            encode_varint(list.len() as u64, &mut self.encoded);
            for bound in list {
                encode_varint(bound.cast_unsigned(), &mut self.encoded);
            }
        }
        let found = self.encoded.len();
        let end = u32::try_from(found).map_err(|_| ConfigurationError::TooLong {
            what: "the encoded bounds of the batch (in bytes)".to_owned(),
            found,
            limit: u32::MAX as usize,
        })?;
        self.ends.push(end);
        Ok(())
    }

    /// Adds the tile that has these 24 features, as an npz file holds it.
    pub fn push_features(
        &mut self,
        features: &[f32],
        limits: &Limits,
    ) -> Result<(), ConfigurationError> {
        let lists: Vec<Vec<i64>> = features.chunks_exact(8).map(bounds_of_features).collect();
        let tile = TileConfiguration::new([0, 1, 2].map(|list| lists[list].as_slice()));
        // The features of a list have at most six bounds, and the sum and the product of all. If the
        // six bounds have another sum or product, the list is longer, and its other bounds are
        // unknown.
        if tile.features() != features {
            return Err(ConfigurationError::NotBounds { config: self.len() });
        }
        self.push(tile, limits)
    }

    /// Number of configurations.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no configurations.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bits of the features, by which tiles differ for a model.
    pub(super) fn key(&self, config: usize) -> [u32; TILE_FEATURES] {
        self.get(config).view().features().map(f32::to_bits)
    }

    /// Returns one tile.
    pub fn get(&self, config: usize) -> Tile {
        let encoded = &mut self.encoded(config);
        let present = read_number(encoded);
        let mut bounds = Vec::new();
        let ends = [0, 1, 2].map(|list| {
            let count = match present >> list & 1 {
                1 => read_number(encoded),
                _ => 0,
            };
            bounds.extend((0..count).map(|_| read_number(encoded)));
            bounds.len()
        });
        Tile {
            bounds,
            ends: [ends[0], ends[1]],
        }
    }

    /// One tile as it is kept: equal tiles have equal bytes.
    pub(super) fn encoded(&self, config: usize) -> &[u8] {
        let start = config
            .checked_sub(1)
            .map_or(0, |previous| self.ends[previous] as usize);
        &self.encoded[start..self.ends[config] as usize]
    }

    /// Copies the tiles of these numbers, which must be below the length.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        let mut selected = Self::default();
        for &config in numbers {
            selected.encoded.extend_from_slice(self.encoded(config));
            selected.ends.push(to_u32(selected.encoded.len()));
        }
        selected
    }

    /// Iterates over the tiles.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Tile> {
        (0..self.len()).map(|config| self.get(config))
    }
}

/// Reads a number that [`TileBatch`] wrote.
fn read_number(encoded: &mut &[u8]) -> i64 {
    decode_varint(encoded).unwrap_or_default().cast_signed()
}

/// Returns the shortest list of bounds with these features (six values, sum, product). A zero at its end shows only in the
/// product.
fn bounds_of_features(features: &[f32]) -> Vec<i64> {
    let used = features[..6]
        .iter()
        .rposition(|value| *value != 0.0)
        .map_or(0, |last| last + 1);
    // Unused places hold zeros, as a bound of 0 does. A product of 0 without a zero among the
    // values shows that one such bound follows.
    let ends_in_zero =
        usize::from(used > 0 && features[7] == 0.0 && !features[..used].contains(&0.0));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "whole numbers that were stored as f32"
    )]
    features[..(used + ends_in_zero).min(6)]
        .iter()
        .map(|&value| value as i64)
        .collect()
}

/// Checks the length of a list of bounds.
pub(super) fn check_bounds(config: usize, found: usize) -> Result<(), ConfigurationError> {
    if found <= MAX_BOUNDS {
        return Ok(());
    }
    Err(ConfigurationError::TooLong {
        what: format!("a list of bounds of configuration {config}"),
        found,
        limit: MAX_BOUNDS,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::configuration::tile) fn batch(tiles: &[[Vec<i64>; 3]]) -> TileBatch {
        let mut batch = TileBatch::default();
        for [kernel_bounds, output_bounds, input_bounds] in tiles {
            let tile = TileConfiguration {
                kernel_bounds,
                output_bounds,
                input_bounds,
            };
            batch.push(tile, &Limits::default()).unwrap();
        }
        batch
    }

    #[test]
    fn features_are_those_of_the_golden_row() {
        // Spec §10.1: kernel m01, configuration 0.
        let tiles = batch(&[[vec![3, 1, 24, 3], vec![12, 4, 4, 3], vec![]]]);
        let mut expected = [0.0; TILE_FEATURES];
        expected[..16].copy_from_slice(&[
            3., 1., 24., 3., 0., 0., 31., 216., 12., 4., 4., 3., 0., 0., 23., 576.,
        ]);
        assert_eq!(tiles.get(0).view().features(), expected);
    }

    #[test]
    fn tiles_come_back_from_their_features() {
        let lists = [vec![3, 1, 24, 3], vec![], vec![5, 0]];
        let mut read = TileBatch::default();
        read.push_features(
            &batch(std::slice::from_ref(&lists)).get(0).view().features(),
            &Limits::default(),
        )
        .unwrap();
        assert_eq!(read, batch(&[lists]));
        let long = batch(&[[vec![2; 7], vec![], vec![]]]);
        let refused = read.push_features(&long.get(0).view().features(), &Limits::default());
        assert_eq!(refused, Err(ConfigurationError::NotBounds { config: 1 }));
    }
}
