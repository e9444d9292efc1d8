//! Reads the two forms of a tile batch, which are equal in meaning, from the wire.

use hlorank_proto::v1::{PackedTileConfigs, TileConfigs};
use prost::Message as _;

use super::{
    TileBatch, TileConfiguration,
    batch::{MAX_BOUNDS, check_configs, too_many_bounds},
};
use crate::{
    ConfigurationError, Limits,
    configuration::encoded_form::{EncodedForm, EncodedSize, FormFacts},
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
    check_configs(count_messages(message, 1)?, limits)?;
    let (mut batch, mut lists) = (TileBatch::default(), [Vec::new(), Vec::new(), Vec::new()]);
    for tile in messages(message, 1) {
        let tile = tile?;
        for (list, number) in lists.iter_mut().zip(1..) {
            let found = count_numbers(tile, number)?;
            if found > MAX_BOUNDS {
                return Err(too_many_bounds(batch.len(), found));
            }
            list.clear();
            list.extend(
                numbers(tile, number)
                    .map_while(Result::ok)
                    .map(u64::cast_signed),
            );
        }
        let [kernel_bounds, output_bounds, input_bounds] = lists.each_ref().map(Vec::as_slice);
        batch.push(
            TileConfiguration {
                kernel_bounds,
                output_bounds,
                input_bounds,
            },
            limits,
        )?;
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
    check_configs(configs, limits)?;
    if let Some(&found) = counts.iter().find(|count| **count > MAX_BOUNDS) {
        return Err(too_many_bounds(0, found));
    }
    let width: usize = counts.iter().sum();
    let expected = configs * width * size_of::<i32>();
    if bounds.len() != expected {
        return Err(ConfigurationError::WrongCount {
            what: "the matrix of bounds (in bytes)".to_owned(),
            found: bounds.len(),
            expected,
        });
    }
    let mut batch = TileBatch::default();
    let mut row = Vec::with_capacity(width);
    let [kernel, output, _] = counts;
    let (quads, _) = bounds.as_chunks::<4>();
    for config in 0..configs {
        let quads = &quads[config * width..][..width];
        let values = quads.iter().map(|quad| i32::from_le_bytes(*quad));
        row.clear();
        row.extend(values.map(i64::from));
        let (kernel_bounds, rest) = row.split_at(kernel);
        let (output_bounds, input_bounds) = rest.split_at(output);
        let tile = TileConfiguration {
            kernel_bounds,
            output_bounds,
            input_bounds,
        };
        batch.push(tile, limits)?;
    }
    Ok(batch)
}
