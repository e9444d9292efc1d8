//! Reads and writes the two forms of a tile batch, which are equal in meaning.

use hlorank_proto::v1::{PackedTileConfigs, TileConfig, TileConfigs};

use super::batch::{Tile, TileBatch, TileConfiguration, check_bounds};
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{EncodedSize, check_count, check_size, to_u32},
    wire::{count_messages, count_numbers, last_bytes, last_number, messages, numbers, uint32},
};

/// A bound takes at most ten bytes for the four of the packed form, and a tile eight beside its bounds.
pub(in crate::configuration) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    3 * size.bytes + 8 * size.configs.min(limits.configs)
}

pub(in crate::configuration) fn read_readable(
    message: &[u8],
    limits: &Limits,
) -> Result<TileBatch, ConfigurationError> {
    check_size(count_messages(message, 1)?, 0, limits)?;
    let mut batch = TileBatch::default();
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    for tile in messages(message, 1) {
        let tile = tile?;
        for (list, number) in lists.iter_mut().zip(1..) {
            // The bounds are counted before they are kept. Counting meets every error, so reading
            // does not end early.
            check_bounds(batch.len(), count_numbers(tile, number)?)?;
            let bounds = numbers(tile, number).map_while(Result::ok);
            list.clear();
            list.extend(bounds.map(u64::cast_signed));
        }
        let lists = lists.each_ref().map(Vec::as_slice);
        batch.push(TileConfiguration::new(lists), limits)?;
    }
    Ok(batch)
}

pub(in crate::configuration) fn read_packed(
    message: &[u8],
    limits: &Limits,
) -> Result<TileBatch, ConfigurationError> {
    let mut fields = [0; 4];
    for (field, number) in fields.iter_mut().zip(1..) {
        *field = uint32(last_number(message, number)?) as usize;
    }
    let [configs, counts @ ..] = fields;
    let bounds = last_bytes(message, 5)?;
    // The limits on both factors come first, so that their product does not overflow.
    check_size(configs, 0, limits)?;
    for count in counts {
        check_bounds(0, count)?;
    }
    let width: usize = counts.iter().sum();
    let expected = configs * width * size_of::<i32>();
    check_count("the matrix of bounds (in bytes)", bounds.len(), expected)?;
    let [kernel, output, _] = counts;
    let mut batch = TileBatch::default();
    let mut row = Vec::with_capacity(width);
    let (quads, _) = bounds.as_chunks::<4>();
    // Tiles may have no bounds at all, so rows are counted and not cut from the matrix, which has
    // none of that width.
    for config in 0..configs {
        let values = quads[config * width..][..width].iter();
        row.clear();
        row.extend(values.map(|&quad| i64::from(i32::from_le_bytes(quad))));
        let (kernel_bounds, rest) = row.split_at(kernel);
        let (output_bounds, input_bounds) = rest.split_at(output);
        let tile = TileConfiguration::new([kernel_bounds, output_bounds, input_bounds]);
        batch.push(tile, limits)?;
    }
    Ok(batch)
}

impl TileBatch {
    /// Writes the readable form.
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
    pub fn to_packed(&self) -> Option<PackedTileConfigs> {
        let bound_counts = |tile: &Tile| tile.view().lists().map(<[i64]>::len);
        let counts = bound_counts(&self.iter().next()?);
        let mut bounds = Vec::new();
        for tile in self.iter() {
            if bound_counts(&tile) != counts {
                return None;
            }
            for &bound in tile.view().lists().into_iter().flatten() {
                bounds.extend(i32::try_from(bound).ok()?.to_le_bytes());
            }
        }
        let [kernel, output, input] = counts.map(to_u32);
        Some(PackedTileConfigs {
            config_count: to_u32(self.len()),
            kernel_bound_count: kernel,
            output_bound_count: output,
            input_bound_count: input,
            bounds: bounds.into(),
        })
    }
}
