use std::fmt::Display;

use crate::{
    ConfigurationError, Limits,
    wire::{numbers, uint32},
};

/// Checks the size of a batch before memory is taken for it.
pub(super) fn check_size(
    configs: usize,
    slots: usize,
    limits: &Limits,
) -> Result<(), ConfigurationError> {
    if configs == 0 {
        return Err(ConfigurationError::Empty);
    }
    if configs > limits.configs {
        return Err(ConfigurationError::TooMany {
            found: configs,
            limit: limits.configs,
        });
    }
    // The product saturates, because both factors come from outside. Below the limit, callers
    // multiply freely.
    if configs.saturating_mul(slots) > limits.config_entries {
        return Err(ConfigurationError::TooManyEntries {
            configs,
            slots,
            limit: limits.config_entries,
        });
    }
    Ok(())
}

/// Checks that a list has as many values as configurations and slots ask for.
pub(super) fn check_count(
    what: &(impl Display + ?Sized),
    found: usize,
    expected: usize,
) -> Result<(), ConfigurationError> {
    if found != expected {
        return Err(ConfigurationError::WrongCount {
            what: what.to_string(),
            found,
            expected,
        });
    }
    Ok(())
}

/// Converts a count of a batch, which limits keep far below `u32::MAX`.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The size of a batch before it is read.
pub(super) struct EncodedSize {
    /// Bytes of the message.
    pub(super) bytes: usize,
    /// Number of configurations that it claims to have.
    pub(super) configs: usize,
    /// Number of slots of the graph.
    pub(super) slots: usize,
}

/// Iterates over the numbers of a field that was counted.
pub(super) fn uint32s(message: &[u8], number: u32) -> impl Iterator<Item = u32> {
    numbers(message, number).map_while(Result::ok).map(uint32)
}

/// Returns the sum of the numbers of a field that was counted.
pub(super) fn sum_of(message: &[u8], number: u32) -> usize {
    // The sum is what a message claims, so it may be far above its length. It does not overflow 64
    // bits.
    let sum: u64 = uint32s(message, number).map(u64::from).sum();
    usize::try_from(sum).unwrap_or(usize::MAX)
}

/// Checks that a configuration changes a slot that is there, and once. `changed_by` has the last configuration that changed
/// each slot.
pub(super) fn check_change(
    config: usize,
    slot: u32,
    changed_by: &mut [usize],
) -> Result<(), ConfigurationError> {
    // A mark of one configuration means nothing to the next, so the marks are not cleared in
    // between. Clearing all slots would take longer than reading the few that change.
    match changed_by.get_mut(slot as usize) {
        None => Err(ConfigurationError::NoSuchSlot {
            config,
            slot,
            slots: changed_by.len(),
        }),
        Some(last) if *last == config => Err(ConfigurationError::SetTwice {
            config,
            what: "slot",
            number: slot,
        }),
        Some(last) => {
            *last = config;
            Ok(())
        }
    }
}
