//! What the delta forms of layouts and fusions have in common.

use std::ops::Range;

use crate::{
    ConfigurationError,
    wire::{numbers, uint32},
};

/// Iterates over the numbers of a field that was counted.
pub(super) fn uint32s(message: &[u8], number: u32) -> impl Iterator<Item = u32> {
    numbers(message, number).map_while(Result::ok).map(uint32)
}

/// Checks that a configuration changes a slot that is there, and once. `changed_by` has the last configuration that changed
/// each slot.
pub(super) fn check_change(
    config: usize,
    slot: u32,
    changed_by: &mut [usize],
) -> Result<(), ConfigurationError> {
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

/// Cuts the counts of a delta form into parts of at most `size` configurations. Returns each part with the range of its
/// changes.
pub(super) fn cut_changes(
    counts: &[u32],
    size: usize,
) -> impl Iterator<Item = (Vec<u32>, Range<usize>)> {
    let mut first = 0_usize;
    counts.chunks(size).map(move |counts| {
        let range = first..first + counts.iter().map(|count| *count as usize).sum::<usize>();
        first = range.end;
        (counts.to_vec(), range)
    })
}

/// Returns the numbers of the changes of a part. A recorded call may hold another number of changes than it counts, which
/// the server refuses.
pub(super) fn changes_of(numbers: &[u32], range: Range<usize>) -> Vec<u32> {
    numbers.get(range).unwrap_or_default().to_vec()
}
