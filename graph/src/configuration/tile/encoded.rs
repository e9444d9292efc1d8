//! Reads the two forms of a tile batch, which are equal in meaning, from the wire.

use hlorank_proto::v1::{PackedTileConfigs, TileConfigs};
use prost::Message as _;

use super::{TileBatch, TileConfiguration, batch::check_bounds};
use crate::{
    ConfigurationError, Limits,
    configuration::{
        checks::{check_count, check_size},
        encoded_form::{EncodedForm, EncodedSize, FormFacts},
    },
    wire::{count_messages, count_numbers, last_bytes, last_number, messages, numbers, uint32},
};

pub(super) const READABLE_TILES: EncodedForm<TileBatch> = EncodedForm {
    facts: FormFacts {
        number: 4,
        field: "tile_configs",
        count: |message| count_messages(message, 1),
        columns: None,
        read_bytes,
    },
    read: |message, _, limits| read_readable(message, limits),
};

pub(super) const PACKED_TILES: EncodedForm<TileBatch> = EncodedForm {
    facts: FormFacts {
        number: 5,
        field: "packed_tile_configs",
        count: |message| Ok(uint32(last_number(message, 1)?) as usize),
        columns: None,
        read_bytes,
    },
    read: |message, _, limits| read_packed(message, limits),
};

/// A bound takes at most ten bytes for the four of the packed form, and a tile eight beside its bounds.
fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    3 * size.bytes + 8 * size.configs.min(limits.configs)
}

impl TileBatch {
    /// Reads the readable form.
    pub fn from_readable(
        message: &TileConfigs,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_readable(&message.encode_to_vec(), limits)
    }

    /// Reads the packed form.
    pub fn from_packed(
        message: &PackedTileConfigs,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_packed(&message.encode_to_vec(), limits)
    }
}

fn read_readable(message: &[u8], limits: &Limits) -> Result<TileBatch, ConfigurationError> {
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
        batch.push(TileConfiguration::of(lists), limits)?;
    }
    Ok(batch)
}

fn read_packed(message: &[u8], limits: &Limits) -> Result<TileBatch, ConfigurationError> {
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
    read_matrix(bounds, configs, counts, limits)
}

/// Reads the `[configs, bounds]` matrix of tiles that have these numbers of bounds.
fn read_matrix(
    bounds: &[u8],
    configs: usize,
    [kernel, output, input]: [usize; 3],
    limits: &Limits,
) -> Result<TileBatch, ConfigurationError> {
    let width = kernel + output + input;
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
        let tile = TileConfiguration::of([kernel_bounds, output_bounds, input_bounds]);
        batch.push(tile, limits)?;
    }
    Ok(batch)
}
