//! A tile as bytes: a byte whose bits say which lists have bounds, then for each of these its length and its bounds as
//! varints.

use super::{TileBatch, TileConfiguration};
use crate::{
    ConfigurationError, Limits,
    configuration::canonical::{malformed, number},
};

pub(super) fn read<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<TileBatch, ConfigurationError> {
    let mut batch = TileBatch::default();
    for config in configs {
        let lists = read_lists(config)?;
        let [kernel_bounds, output_bounds, input_bounds] = lists.each_ref().map(Vec::as_slice);
        let tile = TileConfiguration {
            kernel_bounds,
            output_bounds,
            input_bounds,
        };
        batch.push(tile, limits)?;
    }
    if batch.is_empty() {
        return Err(ConfigurationError::Empty);
    }
    Ok(batch)
}

fn read_lists(mut config: &[u8]) -> Result<[Vec<i64>; 3], ConfigurationError> {
    let present = number(&mut config)?;
    let mut lists = [Vec::new(), Vec::new(), Vec::new()];
    for (bit, list) in lists.iter_mut().enumerate() {
        if present >> bit & 1 == 0 {
            continue;
        }
        let count = number(&mut config)?;
        if count > config.len() as u64 {
            return Err(malformed(&format!("list {bit} of a tile ends early")));
        }
        for _ in 0..count {
            list.push(number(&mut config)?.cast_signed());
        }
    }
    if !config.is_empty() {
        return Err(malformed("a tile has bytes after its bounds"));
    }
    Ok(lists)
}
