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
        let lists = lists.each_ref().map(Vec::as_slice);
        batch.push(TileConfiguration::of(lists), limits)?;
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
        *list = read_bounds(&mut config, bit)?;
    }
    if !config.is_empty() {
        return Err(malformed("a tile has bytes after its bounds"));
    }
    Ok(lists)
}

fn read_bounds(config: &mut &[u8], list: usize) -> Result<Vec<i64>, ConfigurationError> {
    // Every bound takes at least one byte, so the count is bounded by the rest before a list of it
    // is made.
    let count = number(config)?;
    if count > config.len() as u64 {
        return Err(malformed(&format!("list {list} of a tile ends early")));
    }
    let bounds = (0..count).map(|_| number(config).map(u64::cast_signed));
    bounds.collect()
}
