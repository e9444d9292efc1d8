//! Reads the three forms of a fusion batch, which are equal in meaning, from the wire.

use std::collections::HashMap;

use hlorank_proto::v1::{DeltaFusionConfigs, FusionConfigs, PackedFusionConfigs};
use prost::Message as _;

use super::FusionBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::{
        changes::{check_change, sum_of, uint32s},
        checks::{check_count, check_size},
        encoded_form::{EncodedForm, EncodedSize, FormFacts},
    },
    pace,
    program::{flip, is_set, row_bytes},
    wire::{count_messages, count_numbers, last_bytes, last_number, messages, numbers, uint32},
};

/// Numbers of the fields of the delta form.
const BASE: u32 = 1;
const CHANGE_COUNTS: u32 = 2;
const CHANGE_SLOTS: u32 = 3;

pub(super) const READABLE_FUSIONS: EncodedForm<FusionBatch> = EncodedForm {
    facts: FormFacts {
        number: 6,
        field: "fusion_configs",
        count: |message| count_messages(message, 1),
        columns: None,
        read_bytes,
    },
    read: |message, slots, limits| read_readable(message, slots, limits),
};

pub(super) const PACKED_FUSIONS: EncodedForm<FusionBatch> = EncodedForm {
    facts: FormFacts {
        number: 7,
        field: "packed_fusion_configs",
        count: |message| Ok(uint32(last_number(message, 1)?) as usize),
        columns: None,
        read_bytes,
    },
    read: |message, slots, limits| read_packed(message, slots.len(), limits),
};

pub(super) const DELTA_FUSIONS: EncodedForm<FusionBatch> = EncodedForm {
    facts: FormFacts {
        number: 8,
        field: "delta_fusion_configs",
        count: |message| count_numbers(message, CHANGE_COUNTS),
        columns: None,
        read_bytes,
    },
    read: |message, slots, limits| read_delta(message, slots.len(), limits),
};

/// The bits of a batch, and the number of the last configuration that changed each slot. Bits of a batch over the limit are
/// not made.
fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let bytes = size
        .configs
        .min(limits.configs)
        .saturating_mul(row_bytes(size.slots));
    bytes.min(limits.config_entries) + 2 * size.slots * size_of::<usize>()
}

impl FusionBatch {
    /// Reads the readable form; `nodes` holds the node of each slot.
    pub fn from_readable(
        message: &FusionConfigs,
        nodes: &[u32],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_readable(&message.encode_to_vec(), nodes, limits)
    }

    /// Reads the packed form for a program of `slots` slots.
    pub fn from_packed(
        message: &PackedFusionConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_packed(&message.encode_to_vec(), slots, limits)
    }

    /// Reads the delta form for a program of `slots` slots.
    pub fn from_delta(
        message: &DeltaFusionConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        read_delta(&message.encode_to_vec(), slots, limits)
    }
}

fn read_readable(
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
            fuse(&mut row, slot, config, node)?;
        }
        fused.extend(row);
    }
    FusionBatch::new(configs, nodes.len(), fused, limits)
}

/// Sets the bit of the slot of a node, which must not be set yet.
fn fuse(row: &mut [u8], slot: usize, config: usize, node: u32) -> Result<(), ConfigurationError> {
    if is_set(row, slot) {
        return Err(ConfigurationError::SetTwice {
            config,
            what: "node",
            number: node,
        });
    }
    flip(row, slot);
    Ok(())
}

fn read_packed(
    message: &[u8],
    slots: usize,
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let configs = uint32(last_number(message, 1)?) as usize;
    let fused = last_bytes(message, 2)?;
    // The size is checked here too, before the bits are copied.
    check_size(configs, slots, limits)?;
    let expected = configs * row_bytes(slots);
    check_count("the matrix of bits (in bytes)", fused.len(), expected)?;
    FusionBatch::new(configs, slots, fused.to_vec(), limits)
}

fn read_delta(
    message: &[u8],
    slots: usize,
    limits: &Limits,
) -> Result<FusionBatch, ConfigurationError> {
    let configs = count_numbers(message, CHANGE_COUNTS)?;
    check_size(configs, slots, limits)?;
    let base = last_bytes(message, BASE)?;
    check_count("the base (in bytes)", base.len(), row_bytes(slots))?;
    let found = count_numbers(message, CHANGE_SLOTS)?;
    check_count("change_slots", found, sum_of(message, CHANGE_COUNTS))?;
    let fused = changed_rows(message, base, configs, slots)?;
    FusionBatch::new(configs, slots, fused, limits)
}

/// Returns the bits of the configurations of the delta form, whose lists were counted.
fn changed_rows(
    message: &[u8],
    base: &[u8],
    configs: usize,
    slots: usize,
) -> Result<Vec<u8>, ConfigurationError> {
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
    Ok(fused)
}

#[cfg(test)]
mod tests {
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
        FusionBatch::from_delta(&message, 3, &Limits::default())
    }

    #[test]
    fn changes_flip_bits_of_the_base() {
        let batch = delta(&[0, 2, 1], &[0, 1, 2]).unwrap();
        assert_eq!(
            [batch.row(0), batch.row(1), batch.row(2)],
            [[0b10], [0b01], [0b110]]
        );
    }

    #[test]
    fn wrong_changes_are_named() {
        let (slot, slots) = (3, 3);
        assert_eq!(
            delta(&[0, 1], &[3]),
            Err(ConfigurationError::NoSuchSlot {
                config: 1,
                slot,
                slots
            })
        );
        let twice = ConfigurationError::SetTwice {
            config: 1,
            what: "slot",
            number: 2,
        };
        assert_eq!(delta(&[1, 2], &[2, 2, 2]), Err(twice));
        assert!(matches!(
            delta(&[2], &[0]),
            Err(ConfigurationError::WrongCount { .. })
        ));
        assert_eq!(delta(&[], &[]), Err(ConfigurationError::Empty));
    }

    #[test]
    fn a_readable_configuration_names_slots() {
        let read = |fused_nodes: &[u32]| {
            let config = hlorank_proto::v1::FusionConfig {
                fused_nodes: fused_nodes.to_vec(),
            };
            let message = FusionConfigs {
                configs: vec![config],
            };
            FusionBatch::from_readable(&message, &[4, 6, 9], &Limits::default())
        };
        assert_eq!(read(&[9, 4]).unwrap().row(0), [0b101]);
        assert_eq!(
            read(&[5]),
            Err(ConfigurationError::NotFusible { config: 0, node: 5 })
        );
        let twice = ConfigurationError::SetTwice {
            config: 0,
            what: "node",
            number: 9,
        };
        assert_eq!(read(&[9, 9]), Err(twice));
    }
}
