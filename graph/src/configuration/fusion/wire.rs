//! Reads the two forms of a fusion batch, which are equal in meaning, and writes the small one.

use std::collections::HashMap;

use hlorank_proto::v1::PackedFusionConfigs;

use super::batch::FusionBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{EncodedSize, check_count, check_size, to_u32},
    program::{flip, is_set, row_bytes},
    wire::{count_messages, last_bytes, last_number, messages, numbers, uint32},
};

/// The bits of a batch, and the slot of each node. Bits of a batch over the limit are not made.
pub(in crate::configuration) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let bytes = size
        .configs
        .min(limits.configs)
        .saturating_mul(row_bytes(size.slots));
    bytes.min(limits.config_entries) + size.slots * size_of::<(u32, usize)>()
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
}
