//! Reads the readable and the packed form of a layout batch, which are equal in meaning, from the wire.

use std::collections::HashMap;

use hlorank_proto::v1::{LayoutConfigs, PackedLayoutConfigs};
use prost::Message as _;

use super::{
    LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    batch::{check_table, index_width},
    entry::{check_dimensions, check_tensors},
};
use crate::{
    ConfigurationError, Limits,
    configuration::{
        checks::{check_count, check_size},
        encoded_form::{EncodedForm, EncodedSize, FormFacts},
    },
    wire::{
        count_messages, count_numbers, int32, last_bytes, last_number, messages, numbers, uint32,
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
    // One configuration is read at a time into the same places, because the messages of all would
    // take many times the batch.
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
        Self {
            entries: vec![LayoutEntry::DEFAULT; slot_of_node.len()],
            set: vec![false; slot_of_node.len()],
            slot_of_node,
        }
    }

    /// Reads the entries of a configuration. Nodes that it does not name have the default entry.
    fn read(&mut self, config: usize, message: &[u8]) -> Result<(), ConfigurationError> {
        self.entries.fill(LayoutEntry::DEFAULT);
        self.set.fill(false);
        for layout in messages(message, 1) {
            let layout = layout?;
            let node = uint32(last_number(layout, 1)?);
            let slot = self.slot_to_set(config, node)?;
            self.entries[slot] =
                read_entry(layout, || format!("configuration {config}, node {node}"))?;
        }
        Ok(())
    }

    /// Returns the slot of a node, which must not be set yet.
    fn slot_to_set(&mut self, config: usize, node: u32) -> Result<usize, ConfigurationError> {
        let Some(&slot) = self.slot_of_node.get(&node) else {
            return Err(ConfigurationError::NotConfigurable { config, node });
        };
        // A node can be set to the default entry, so the entries do not show which nodes were set.
        if std::mem::replace(&mut self.set[slot], true) {
            return Err(ConfigurationError::SetTwice {
                config,
                what: "node",
                number: node,
            });
        }
        Ok(slot)
    }
}

/// Reads the tensors of a node.
fn read_entry(layout: &[u8], what: impl Fn() -> String) -> Result<LayoutEntry, ConfigurationError> {
    // Both lengths are checked before a list is made, because a hostile message could hold millions
    // of tensors.
    check_tensors(count_messages(layout, 2)?, &what)?;
    let tensors = messages(layout, 2).map(|tensor| read_tensor(tensor?, &what));
    let tensors: Vec<Vec<i32>> = tensors.collect::<Result<_, _>>()?;
    LayoutEntry::from_tensors(tensors.iter(), what)
}

/// Reads the dimensions of a tensor, from most minor to most major.
fn read_tensor(tensor: &[u8], what: impl Fn() -> String) -> Result<Vec<i32>, ConfigurationError> {
    check_dimensions(count_numbers(tensor, 1)?, what)?;
    let dimensions = numbers(tensor, 1).map_while(Result::ok);
    Ok(dimensions.map(int32).collect())
}

fn read_packed(
    message: &[u8],
    slots: usize,
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
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
}
