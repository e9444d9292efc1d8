//! Reads the readable and the packed form of a layout batch, which are equal in meaning, from the wire.

use std::collections::HashMap;

use hlorank_proto::v1::{LayoutConfigs, PackedLayoutConfigs};
use prost::Message as _;

use super::{
    LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    batch::{BYTE_TABLE, check_table},
    entry::{check_dimensions, check_tensors},
};
use crate::{
    ConfigurationError, Limits,
    configuration::{
        checks::{check_count, check_size},
        encoded_form::{EncodedForm, EncodedSize, FormFacts},
    },
    wire::{
        WireError, count_messages, count_numbers, int32, last_bytes, last_number, messages,
        numbers, uint32,
    },
};

pub(super) const READABLE_LAYOUTS: EncodedForm<LayoutBatch> = EncodedForm {
    facts: FormFacts {
        number: 1,
        field: "layout_configs",
        count: |message| count_messages(message, 1),
        columns: None,
        read_bytes,
    },
    read: |message, configurable, limits| read_readable(message, configurable, limits),
};

pub(super) const PACKED_LAYOUTS: EncodedForm<LayoutBatch> = EncodedForm {
    facts: FormFacts {
        number: 2,
        field: "packed_layout_configs",
        count: |message| Ok(uint32(last_number(message, 1)?) as usize),
        columns: None,
        read_bytes,
    },
    read: |message, configurable, limits| read_packed(message, configurable.len(), limits),
};

/// An entry of a table takes eight bytes for at least three on the wire. The index matrix of a batch over the limit is
/// not built.
pub(super) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let entries = size
        .configs
        .saturating_mul(size.slots)
        .min(limits.config_entries);
    3 * size.bytes + entries * size_of::<u16>()
}

impl LayoutBatch {
    /// Reads the readable form; `configurable` holds the node of each slot.
    pub fn from_readable(
        message: &LayoutConfigs,
        configurable: &[u32],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_readable(&message.encode_to_vec(), configurable, limits)
    }

    /// Reads the packed form for a graph of `slots` configurable nodes.
    pub fn from_packed(
        message: &PackedLayoutConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_packed(&message.encode_to_vec(), slots, limits)
    }
}

fn read_readable(
    message: &[u8],
    configurable: &[u32],
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    check_size(count_messages(message, 1)?, configurable.len(), limits)?;
    let slot_of_node = configurable.iter().copied().zip(0..).collect();
    let mut layout = ReadableLayout::new(slot_of_node);
    let mut builder = LayoutBatchBuilder::new(configurable.len(), *limits);
    for (config, message) in messages(message, 1).enumerate() {
        layout.read(config, message?)?;
        builder.push(&layout.entries)?;
    }
    builder.build()
}

/// One configuration of the readable form.
struct ReadableLayout {
    slot_of_node: HashMap<u32, usize>,
    entries: Vec<LayoutEntry>,
    set: Vec<bool>,
}

impl ReadableLayout {
    fn new(slot_of_node: HashMap<u32, usize>) -> Self {
        let (entries, set) = (
            vec![LayoutEntry::DEFAULT; slot_of_node.len()],
            vec![false; slot_of_node.len()],
        );
        Self {
            slot_of_node,
            entries,
            set,
        }
    }

    /// Reads the entries of a configuration. Nodes that it does not name have the default entry.
    fn read(&mut self, config: usize, message: &[u8]) -> Result<(), ConfigurationError> {
        self.entries.fill(LayoutEntry::DEFAULT);
        self.set.fill(false);
        for layout in messages(message, 1) {
            let layout = layout?;
            let node = uint32(last_number(layout, 1)?);
            let slot = *self
                .slot_of_node
                .get(&node)
                .ok_or(ConfigurationError::NotConfigurable { config, node })?;
            if std::mem::replace(&mut self.set[slot], true) {
                return Err(ConfigurationError::SetTwice {
                    config,
                    what: "node",
                    number: node,
                });
            }
            self.entries[slot] =
                read_entry(layout, || format!("configuration {config}, node {node}"))?;
        }
        Ok(())
    }
}

/// Reads the tensors of a node.
fn read_entry(layout: &[u8], what: impl Fn() -> String) -> Result<LayoutEntry, ConfigurationError> {
    check_tensors(count_messages(layout, 2)?, &what)?;
    let tensor = |tensor: Result<&[u8], WireError>| {
        let tensor = tensor?;
        check_dimensions(count_numbers(tensor, 1)?, &what)?;
        Ok(numbers(tensor, 1)
            .map_while(Result::ok)
            .map(int32)
            .collect())
    };
    let tensors: Vec<Vec<i32>> = messages(layout, 2)
        .map(tensor)
        .collect::<Result<_, ConfigurationError>>()?;
    LayoutEntry::from_tensors(tensors.iter(), what)
}

fn read_packed(
    message: &[u8],
    slots: usize,
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
    let (configs, indices) = (
        uint32(last_number(message, 1)?) as usize,
        last_bytes(message, 3)?,
    );
    check_size(configs, slots, limits)?;
    let tables = read_tables(message, 2, slots)?;
    let width = if tables.iter().all(|table| table.len() <= BYTE_TABLE) {
        1
    } else {
        2
    };
    check_count(
        "the index matrix (in bytes)",
        indices.len(),
        configs * slots * width,
    )?;
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
pub(super) fn read_tables(
    message: &[u8],
    number: u32,
    slots: usize,
) -> Result<Vec<Vec<LayoutEntry>>, ConfigurationError> {
    check_count(
        "the list of tables",
        count_messages(message, number)?,
        slots,
    )?;
    messages(message, number)
        .enumerate()
        .map(|(slot, table)| read_table(slot, table?))
        .collect()
}

fn read_table(slot: usize, table: &[u8]) -> Result<Vec<LayoutEntry>, ConfigurationError> {
    let count = count_numbers(table, 1)?;
    if count % 3 != 0 {
        let what = format!("the table of slot {slot} (three numbers an entry)");
        check_count(&what, count, count.next_multiple_of(3))?;
    }
    check_table(slot, count / 3)?;
    let mut entries = Vec::with_capacity(count / 3);
    let mut numbers = numbers(table, 1).map_while(Result::ok).map(uint32);
    while let (Some(output), Some(first), Some(second)) =
        (numbers.next(), numbers.next(), numbers.next())
    {
        let what = || {
            format!(
                "a number of entry {} in the table of slot {slot}",
                entries.len()
            )
        };
        entries.push(LayoutEntry::from_numbers([output, first, second], what)?);
    }
    Ok(entries)
}
