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

/// Cuts the counts of a delta form into parts of at most `size` configurations. Returns each part with the range of its
/// changes.
pub(super) fn cut_changes(
    counts: &[u32],
    size: usize,
) -> impl Iterator<Item = (Vec<u32>, Range<usize>)> {
    // The changes of all configurations are in one list, so those of a part begin where those of
    // the part before end.
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
