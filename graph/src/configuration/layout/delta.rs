//! The delta form of a layout batch on the wire: changes to a base configuration.

use hlorank_proto::v1::DeltaLayoutConfigs;
use prost::Message as _;

use super::{
    LayoutBatch, LayoutEntry,
    encoded::{read_bytes, read_tables},
};
use crate::{
    ConfigurationError, Limits,
    configuration::{
        changes::{check_change, sum_of, uint32s},
        checks::{check_count, check_size},
        count::to_u32,
        encoded_form::{EncodedForm, FormFacts},
    },
    pace,
    wire::count_numbers,
};

/// Numbers of the fields of the message.
const TABLES: u32 = 1;
const BASE: u32 = 2;
const CHANGE_COUNTS: u32 = 3;
const CHANGE_SLOTS: u32 = 4;
const CHANGE_ENTRIES: u32 = 5;

pub(super) const DELTA_LAYOUTS: EncodedForm<LayoutBatch> = EncodedForm {
    facts: FormFacts {
        number: 3,
        field: "delta_layout_configs",
        count: |message| count_numbers(message, CHANGE_COUNTS),
        columns: None,
        read_bytes,
    },
    read: |message, configurable, limits| read_delta(message, configurable.len(), limits),
};

impl LayoutBatch {
    /// Reads the delta form for a graph of `slots` configurable nodes.
    pub fn from_delta(
        message: &DeltaLayoutConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_delta(&message.encode_to_vec(), slots, limits)
    }

    /// Writes the delta form, with the first configuration as the base.
    #[must_use]
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
}

fn read_delta(
    message: &[u8],
    slots: usize,
    limits: &Limits,
) -> Result<LayoutBatch, ConfigurationError> {
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
    let indices = read_indices(message, configs, &tables)?;
    LayoutBatch::new(configs, tables, indices, limits)
}

fn read_indices(
    message: &[u8],
    configs: usize,
    tables: &[Vec<LayoutEntry>],
) -> Result<Vec<u16>, ConfigurationError> {
    let base = read_base(message, tables)?;
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
            indices[row + slot] = checked_index(config, slot, index, tables)?;
        }
    }
    Ok(indices)
}

/// Reads the base, whose errors name the first configuration.
fn read_base(message: &[u8], tables: &[Vec<LayoutEntry>]) -> Result<Vec<u16>, ConfigurationError> {
    let base = uint32s(message, BASE).enumerate();
    base.map(|(slot, index)| checked_index(0, slot, index, tables))
        .collect()
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
