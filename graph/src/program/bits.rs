//! The bits of a fusion configuration: one per slot, from the lowest bit of the first byte.

/// Number of bytes of a configuration.
pub(crate) fn row_bytes(slots: usize) -> usize {
    slots.div_ceil(8)
}

/// Whether the bit of a slot is set.
pub(crate) fn is_set(row: &[u8], slot: usize) -> bool {
    row[slot / 8] >> (slot % 8) & 1 == 1
}

/// Changes the bit of a slot.
pub(crate) fn flip(row: &mut [u8], slot: usize) {
    row[slot / 8] ^= 1 << (slot % 8);
}
