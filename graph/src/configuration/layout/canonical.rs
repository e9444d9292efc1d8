//! A layout as bytes: the entry of each slot, its three numbers of 17 bits as one varint.

use prost::encoding::encode_varint;

use super::{LayoutBatch, LayoutBatchBuilder, LayoutEntry};
use crate::{ConfigurationError, Limits, configuration::canonical::number};

pub(super) fn write(batch: &LayoutBatch, config: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(batch.slots());
    for slot in 0..batch.slots() {
        encode_varint(batch.entry(config, slot).bits(), &mut bytes);
    }
    bytes
}

pub(super) fn read<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    let mut builder: Option<LayoutBatchBuilder> = None;
    let mut entries = Vec::new();
    for config in configs {
        read_entries(config, &mut entries)?;
        // The bytes do not say the number of slots. The first configuration does, and the builder
        // refuses any other.
        let builder =
            builder.get_or_insert_with(|| LayoutBatchBuilder::new(entries.len(), *limits));
        builder.push(&entries)?;
    }
    builder.ok_or(ConfigurationError::Empty)?.build()
}

/// Reads the entries of one configuration into `entries`.
fn read_entries(
    mut config: &[u8],
    entries: &mut Vec<LayoutEntry>,
) -> Result<(), ConfigurationError> {
    entries.clear();
    while !config.is_empty() {
        let bits = number(&mut config)?;
        let what = || format!("slot {}", entries.len());
        let entry = LayoutEntry::from_bits(bits, what)?;
        entries.push(entry);
    }
    Ok(())
}
