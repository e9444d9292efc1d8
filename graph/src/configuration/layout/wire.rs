//! Reads the three forms of a layout batch, which are equal in meaning, and writes the two that are small.

use std::collections::HashMap;

use hlorank_proto::v1::{DeltaLayoutConfigs, LayoutTable, PackedLayoutConfigs};

use super::{
    batch::{LayoutBatch, LayoutBatchBuilder, check_table},
    entry::{LayoutEntry, check_dimensions, check_tensors},
};
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{
        EncodedSize, check_change, check_count, check_size, sum_of, to_u32, uint32s,
    },
    pace,
    wire::{
        WireError, count_messages, count_numbers, int32, last_bytes, last_number, messages,
        numbers, uint32,
    },
};

/// Numbers of the fields of the delta form.
const TABLES: u32 = 1;
const BASE: u32 = 2;
pub(in crate::configuration) const CHANGE_COUNTS: u32 = 3;
const CHANGE_SLOTS: u32 = 4;
const CHANGE_ENTRIES: u32 = 5;

/// Maximum table length for which the packed form takes one byte per index.
const BYTE_TABLE: usize = 256;

/// An entry of a table takes eight bytes for at least three on the wire. The index matrix of a batch over the limit is
/// not built.
pub(in crate::configuration) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let entries = size
        .configs
        .saturating_mul(size.slots)
        .min(limits.config_entries);
    3 * size.bytes + entries * size_of::<u16>()
}

pub(in crate::configuration) fn read_readable(
    message: &[u8],
    configurable: &[u32],
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    check_size(count_messages(message, 1)?, configurable.len(), limits)?;
    // One configuration is read at a time into the same places, because the messages of all would
    // take many times the batch.
    let slot_of_node: HashMap<u32, usize> = configurable.iter().copied().zip(0..).collect();
    let mut entries = vec![LayoutEntry::DEFAULT; configurable.len()];
    // A node can be set to the default entry, so the entries do not show which nodes were set.
    let mut set = vec![false; configurable.len()];
    let mut builder = LayoutBatchBuilder::new(configurable.len(), *limits);
    for (config, message) in messages(message, 1).enumerate() {
        entries.fill(LayoutEntry::DEFAULT);
        set.fill(false);
        for layout in messages(message?, 1) {
            let layout = layout?;
            let node = uint32(last_number(layout, 1)?);
            let Some(&slot) = slot_of_node.get(&node) else {
                return Err(ConfigurationError::NotConfigurable { config, node });
            };
            if std::mem::replace(&mut set[slot], true) {
                return Err(ConfigurationError::SetTwice {
                    config,
                    what: "node",
                    number: node,
                });
            }
            let what = || format!("configuration {config}, node {node}");
            // Both lengths are checked before a list is made, because a hostile message could hold
            // millions of tensors.
            check_tensors(count_messages(layout, 2)?, what)?;
            let tensors = messages(layout, 2).map(|tensor| {
                let tensor = tensor?;
                check_dimensions(count_numbers(tensor, 1)?, what)?;
                let dimensions = numbers(tensor, 1).map_while(Result::ok);
                Ok(dimensions.map(int32).collect())
            });
            let tensors: Vec<Vec<i32>> = tensors.collect::<Result<_, ConfigurationError>>()?;
            entries[slot] = LayoutEntry::from_tensors_of(tensors.iter(), what)?;
        }
        builder.push(&entries)?;
    }
    builder.build()
}

pub(in crate::configuration) fn read_packed(
    message: &[u8],
    configurable: &[u32],
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    let slots = configurable.len();
    let configs = uint32(last_number(message, 1)?) as usize;
    let indices = last_bytes(message, 3)?;
    check_size(configs, slots, limits)?;
    let tables = read_tables(message, 2, slots)?;
    let width = index_width(tables.iter().map(Vec::len));
    let expected = configs * slots * width;
    check_count("the index matrix (in bytes)", indices.len(), expected)?;
    let indices = match width {
        1 => indices.iter().copied().map(u16::from).collect(),
        _ => indices
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect(),
    };
    LayoutBatch::new(configs, tables, indices, limits)
}

/// Reads the tables of a field, one per slot.
fn read_tables(
    message: &[u8],
    number: u32,
    slots: usize,
) -> Result<Vec<Vec<LayoutEntry>>, ConfigurationError> {
    check_count(
        "the list of tables",
        count_messages(message, number)?,
        slots,
    )?;
    let read = |(slot, table): (usize, Result<&[u8], WireError>)| {
        let table = table?;
        let count = count_numbers(table, 1)?;
        let what = format_args!("the table of slot {slot} (three numbers an entry)");
        check_count(&what, count, count.next_multiple_of(3))?;
        check_table(slot, count / 3)?;
        let mut entries = Vec::with_capacity(count / 3);
        let mut numbers = numbers(table, 1).map_while(Result::ok).map(uint32);
        // The count is a multiple of three, so no entry lacks a number.
        let mut next = || numbers.next().unwrap_or_default();
        for entry in 0..count / 3 {
            let what = || format!("a number of entry {entry} in the table of slot {slot}");
            entries.push(LayoutEntry::from_numbers([next(), next(), next()], what)?);
        }
        Ok(entries)
    };
    messages(message, number).enumerate().map(read).collect()
}

pub(in crate::configuration) fn read_delta(
    message: &[u8],
    configurable: &[u32],
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    let slots = configurable.len();
    let configs = count_numbers(message, CHANGE_COUNTS)?;
    check_size(configs, slots, limits)?;
    // All lists are counted here, so that reading them below meets no error and takes no more
    // memory than the sizes allow.
    check_count("the base", count_numbers(message, BASE)?, slots)?;
    let changes = sum_of(message, CHANGE_COUNTS);
    let found = count_numbers(message, CHANGE_SLOTS)?;
    check_count("change_slots", found, changes)?;
    let found = count_numbers(message, CHANGE_ENTRIES)?;
    check_count("change_entries", found, changes)?;
    let tables = read_tables(message, TABLES, slots)?;
    // Errors of the base name the first configuration.
    let base = uint32s(message, BASE).enumerate();
    let base = base.map(|(slot, index)| checked_index(0, slot, index, &tables));
    let base: Vec<u16> = base.collect::<Result<_, _>>()?;
    let mut changes = uint32s(message, CHANGE_SLOTS).zip(uint32s(message, CHANGE_ENTRIES));
    let mut changed_by = vec![usize::MAX; base.len()];
    let mut indices = Vec::with_capacity(configs * base.len());
    for (config, count) in pace::in_steps(16, uint32s(message, CHANGE_COUNTS)).enumerate() {
        // Every configuration starts as the base, not as the one before.
        let row = indices.len();
        indices.extend_from_slice(&base);
        for (slot_number, index) in changes.by_ref().take(count as usize) {
            let slot = slot_number as usize;
            check_change(config, slot_number, &mut changed_by)?;
            indices[row + slot] = checked_index(config, slot, index, &tables)?;
        }
    }
    LayoutBatch::new(configs, tables, indices, limits)
}

fn checked_index(
    config: usize,
    slot: usize,
    index: u32,
    tables: &[Vec<LayoutEntry>],
) -> Result<u16, ConfigurationError> {
    let entries = tables[slot].len();
    let fits = u16::try_from(index)
        .ok()
        .filter(|index| usize::from(*index) < entries);
    fits.ok_or(ConfigurationError::IndexOutsideTable {
        config,
        slot,
        index,
        entries,
    })
}

/// Returns the number of bytes of an index in the packed form, by the lengths of the tables. The
/// message does not have it.
pub(super) fn index_width(lengths: impl Iterator<Item = usize>) -> usize {
    if lengths.max().unwrap_or(0) <= BYTE_TABLE {
        1
    } else {
        2
    }
}

impl LayoutBatch {
    /// Writes the packed form.
    pub fn to_packed(&self) -> PackedLayoutConfigs {
        let lengths = (0..self.slots()).map(|slot| self.table(slot).len());
        // The matrix is copied as a whole; going through its slots takes ten times as long.
        let indices: Vec<u8> = match index_width(lengths) {
            1 => self
                .indices()
                .iter()
                .map(|index| index.to_le_bytes()[0])
                .collect(),
            _ => self
                .indices()
                .iter()
                .flat_map(|index| index.to_le_bytes())
                .collect(),
        };
        PackedLayoutConfigs {
            config_count: to_u32(self.len()),
            tables: self.write_tables(),
            indices: indices.into(),
        }
    }

    /// Writes the delta form, with the first configuration as the base.
    pub fn to_delta(&self) -> DeltaLayoutConfigs {
        let base = self.row(0);
        let mut message = DeltaLayoutConfigs {
            tables: self.write_tables(),
            base: base.iter().copied().map(u32::from).collect(),
            ..DeltaLayoutConfigs::default()
        };
        for config in 0..self.len() {
            let before = message.change_slots.len();
            let slots = self.row(config).iter().zip(base).enumerate();
            for (slot, (&entry, _)) in slots.filter(|(_, (new, old))| new != old) {
                message.change_slots.push(to_u32(slot));
                message.change_entries.push(entry.into());
            }
            let count = message.change_slots.len() - before;
            message.change_counts.push(to_u32(count));
        }
        message
    }

    fn write_tables(&self) -> Vec<LayoutTable> {
        let table = |slot| LayoutTable {
            entries: self
                .table(slot)
                .iter()
                .flat_map(|entry| entry.numbers())
                .collect(),
        };
        (0..self.slots()).map(table).collect()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    #[test]
    fn tables_past_a_byte_take_two_bytes_an_index() {
        let mut builder = LayoutBatchBuilder::new(1, Limits::default());
        for number in 0..300 {
            let entry = LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap();
            builder.push(&[entry]).unwrap();
        }
        let batch = builder.build().unwrap();
        let packed = batch.to_packed();
        assert_eq!(packed.indices.len(), 600);
        assert_eq!(
            read_packed(&packed.encode_to_vec(), &[0], &Limits::default()).unwrap(),
            batch
        );
    }
}
