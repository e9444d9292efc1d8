//! A fusion as bytes: the number of slots as a varint, and its bits.

use prost::encoding::encode_varint;

use super::FusionBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::canonical::{malformed, number},
};

pub(super) fn write(batch: &FusionBatch, config: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The bytes alone do not say how many of their bits are slots.
    encode_varint(batch.slots() as u64, &mut bytes);
    bytes.extend_from_slice(batch.row(config));
    bytes
}

pub(super) fn read<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let mut slots = None;
    let mut count = 0;
    let mut fused = Vec::new();
    for mut config in configs {
        let found = number(&mut config)?;
        if *slots.get_or_insert(found) != found {
            return Err(malformed("fusions have different numbers of slots"));
        }
        count += 1;
        fused.extend_from_slice(config);
    }
    let slots = usize::try_from(slots.unwrap_or_default()).unwrap_or(usize::MAX);
    FusionBatch::new(count, slots, fused, limits)
}
