//! Reads the three forms of a fusion batch, which are equal in meaning, and writes the two that are small.

use std::collections::HashMap;

use hlorank_proto::v1::{DeltaFusionConfigs, PackedFusionConfigs};

use super::batch::FusionBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{
        EncodedSize, check_change, check_count, check_size, sum_of, to_u32, uint32s,
    },
    pace,
    program::{flip, is_set, row_bytes},
    wire::{count_messages, count_numbers, last_bytes, last_number, messages, numbers, uint32},
};

/// Numbers of the fields of the delta form.
const BASE: u32 = 1;
pub(in crate::configuration) const CHANGE_COUNTS: u32 = 2;
const CHANGE_SLOTS: u32 = 3;

/// The bits of a batch, and the number of the last configuration that changed each slot. Bits of a batch over the limit are
/// not made.
pub(in crate::configuration) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let bytes = size
        .configs
        .min(limits.configs)
        .saturating_mul(row_bytes(size.slots));
    bytes.min(limits.config_entries) + 2 * size.slots * size_of::<usize>()
}

pub(in crate::configuration) fn read_readable(
    message: &[u8],
    nodes: &[u32],
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let configs = count_messages(message, 1)?;
    check_size(configs, nodes.len(), limits)?;
    let slot_of_node: HashMap<u32, usize> = nodes.iter().copied().zip(0..).collect();
    let mut fused = Vec::with_capacity(configs * row_bytes(nodes.len()));
    for (config, message) in messages(message, 1).enumerate() {
        let mut row = vec![0; row_bytes(nodes.len())];
        for node in numbers(message?, 1) {
            let node = uint32(node?);
            let slot = slot_of_node.get(&node);
            let slot = *slot.ok_or(ConfigurationError::NotFusible { config, node })?;
            if is_set(&row, slot) {
                return Err(ConfigurationError::SetTwice {
                    config,
                    what: "node",
                    number: node,
                });
            }
            flip(&mut row, slot);
        }
        fused.extend(row);
    }
    FusionBatch::new(configs, nodes.len(), fused, limits)
}

pub(in crate::configuration) fn read_packed(
    message: &[u8],
    nodes: &[u32],
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let slots = nodes.len();
    let configs = uint32(last_number(message, 1)?) as usize;
    let fused = last_bytes(message, 2)?;
    // The size is checked here too, before the bits are copied.
    check_size(configs, slots, limits)?;
    let expected = configs * row_bytes(slots);
    check_count("the matrix of bits (in bytes)", fused.len(), expected)?;
    FusionBatch::new(configs, slots, fused.to_vec(), limits)
}

pub(in crate::configuration) fn read_delta(
    message: &[u8],
    nodes: &[u32],
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let slots = nodes.len();
    let configs = count_numbers(message, CHANGE_COUNTS)?;
    check_size(configs, slots, limits)?;
    let base = last_bytes(message, BASE)?;
    check_count("the base (in bytes)", base.len(), row_bytes(slots))?;
    let found = count_numbers(message, CHANGE_SLOTS)?;
    check_count("change_slots", found, sum_of(message, CHANGE_COUNTS))?;
    // The lists were counted, so reading them meets no error.
    let mut changes = uint32s(message, CHANGE_SLOTS);
    let mut changed_by = vec![usize::MAX; slots];
    let mut fused = Vec::with_capacity(configs * base.len());
    for (config, count) in pace::in_steps(16, uint32s(message, CHANGE_COUNTS)).enumerate() {
        // Every configuration starts as the base, not as the one before.
        let row = fused.len();
        fused.extend_from_slice(base);
        for slot in changes.by_ref().take(count as usize) {
            check_change(config, slot, &mut changed_by)?;
            flip(&mut fused[row..], slot as usize);
        }
    }
    FusionBatch::new(configs, slots, fused, limits)
}

impl FusionBatch {
    /// Writes the packed form.
    pub fn to_packed(&self) -> PackedFusionConfigs {
        let fused: Vec<u8> = (0..self.len())
            .flat_map(|config| self.row(config))
            .copied()
            .collect();
        PackedFusionConfigs {
            config_count: to_u32(self.len()),
            fused: fused.into(),
        }
    }

    /// Writes the delta form, with the first configuration as the base.
    pub fn to_delta(&self) -> DeltaFusionConfigs {
        let base = self.row(0);
        let mut message = DeltaFusionConfigs {
            base: base.to_vec().into(),
            ..DeltaFusionConfigs::default()
        };
        for config in 0..self.len() {
            let before = message.change_slots.len();
            let changed =
                (0..self.slots()).filter(|&slot| self.is_fused(config, slot) != is_set(base, slot));
            message.change_slots.extend(changed.map(to_u32));
            let count = message.change_slots.len() - before;
            message.change_counts.push(to_u32(count));
        }
        message
    }

    /// Number of bits of all configurations that differ from those of the first.
    pub(super) fn changes(&self) -> usize {
        let bits = |(one, other): (&u8, &u8)| (one ^ other).count_ones() as usize;
        (0..self.len())
            .flat_map(|config| self.row(config).iter().zip(self.row(0)))
            .map(bits)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;

    fn delta(
        change_counts: &[u32],
        change_slots: &[u32],
    ) -> Result<FusionBatch, ConfigurationError> {
        let message = DeltaFusionConfigs {
            base: vec![0b10].into(),
            change_counts: change_counts.to_vec(),
            change_slots: change_slots.to_vec(),
        };
        read_delta(&message.encode_to_vec(), &[0, 1, 2], &Limits::default())
    }

    #[test]
    fn changes_flip_bits_of_the_base() {
        let batch = delta(&[0, 2, 1], &[0, 1, 2]).unwrap();
        assert_eq!(
            [batch.row(0), batch.row(1), batch.row(2)],
            [[0b10], [0b01], [0b110]]
        );
    }
}
