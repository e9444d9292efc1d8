use crate::{
    ConfigurationError, Limits,
    wire::{WireError, last_number, numbers, uint32},
};

/// A wire form of a kind of batches, which is read without being decoded first.
pub(super) struct EncodedForm<Batch> {
    pub(super) facts: FormFacts,
    pub(super) read: ReadForm<Batch>,
}

/// Reads and checks the configurations of an encoded message; the second argument holds the node of each slot.
type ReadForm<Batch> = fn(&[u8], &[u32], &Limits) -> Result<Batch, ConfigurationError>;

/// What is known of a wire form before its configurations are read.
pub(super) struct FormFacts {
    /// Number of its field in a `ConfigBatch`.
    pub(super) number: u32,
    /// Name of that field.
    pub(super) field: &'static str,
    /// Returns the number of configurations that an encoded message claims to have.
    pub(super) count: fn(&[u8]) -> Result<usize, WireError>,
    /// Returns the number of columns of a node that an encoded message claims to have, if they are of a feature set.
    pub(super) columns: Option<fn(&[u8]) -> usize>,
    /// Returns the maximum number of bytes that reading takes beside the message.
    pub(super) read_bytes: fn(&EncodedSize, &Limits) -> usize,
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

/// Returns the number in the first field of a message, which is the number of configurations of a packed form.
pub(super) fn count_first(message: &[u8]) -> Result<usize, WireError> {
    Ok(uint32(last_number(message, 1)?) as usize)
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
