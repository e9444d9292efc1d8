//! The delta form of a layout batch on the wire: changes to a base configuration.

use hlorank_proto::v1::DeltaLayoutConfigs;

use super::{
    LayoutBatch, LayoutEntry,
    batch::{check_count, check_size},
    wire::read_tables,
};
use crate::{ConfigurationError, Limits, configuration::count::to_u32};

impl LayoutBatch {
    /// Reads the delta form for a graph of `slots` configurable nodes.
    pub fn from_delta(
        message: &DeltaLayoutConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let configs = message.change_counts.len();
        check_size(configs, slots, limits)?;
        check_count("the list of tables", message.tables.len(), slots)?;
        check_count("the base", message.base.len(), slots)?;
        let changes: u64 = message.change_counts.iter().copied().map(u64::from).sum();
        let changes = usize::try_from(changes).unwrap_or(usize::MAX);
        check_count("change_slots", message.change_slots.len(), changes)?;
        check_count("change_entries", message.change_entries.len(), changes)?;
        let tables = read_tables(&message.tables)?;
        let indices = delta_indices(message, &tables)?;
        Self::new(configs, tables, indices, limits)
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
            let changed = self.row(config).iter().zip(base).enumerate().filter(|(_, (new, old))| new != old);
            let before = message.change_slots.len();
            for (slot, (&entry, _)) in changed {
                message.change_slots.push(to_u32(slot));
                message.change_entries.push(entry.into());
            }
            message.change_counts.push(to_u32(message.change_slots.len() - before));
        }
        message
    }
}

fn delta_indices(
    message: &DeltaLayoutConfigs,
    tables: &[Vec<LayoutEntry>],
) -> Result<Vec<u16>, ConfigurationError> {
    let base = message.base.iter().enumerate().map(|(slot, &index)| checked_index(0, slot, index, tables));
    let base: Vec<u16> = base.collect::<Result<_, _>>()?;
    let mut changes = message.change_slots.iter().zip(&message.change_entries);
    let mut changed_by = vec![usize::MAX; base.len()];
    let mut indices = Vec::with_capacity(message.change_counts.len() * base.len());
    for (config, &count) in message.change_counts.iter().enumerate() {
        let row = indices.len();
        indices.extend_from_slice(&base);
        for (&slot_number, &index) in changes.by_ref().take(count as usize) {
            let slot = slot_number as usize;
            check_change(config, slot_number, &mut changed_by)?;
            indices[row + slot] = checked_index(config, slot, index, tables)?;
        }
    }
    Ok(indices)
}

fn check_change(config: usize, slot: u32, changed_by: &mut [usize]) -> Result<(), ConfigurationError> {
    match changed_by.get_mut(slot as usize) {
        None => Err(ConfigurationError::NoSuchSlot { config, slot, slots: changed_by.len() }),
        Some(last) if *last == config => {
            Err(ConfigurationError::SetTwice { config, what: "slot", number: slot })
        }
        Some(last) => {
            *last = config;
            Ok(())
        }
    }
}

fn checked_index(
    config: usize,
    slot: usize,
    index: u32,
    tables: &[Vec<LayoutEntry>],
) -> Result<u16, ConfigurationError> {
    let entries = tables[slot].len();
    let fits = u16::try_from(index).ok().filter(|index| usize::from(*index) < entries);
    fits.ok_or(ConfigurationError::IndexOutsideTable { config, slot, index, entries })
}
