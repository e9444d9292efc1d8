/// Converts a count of a batch, which limits keep far below `u32::MAX`.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Writes numbers separated by commas.
pub(super) fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers
        .iter()
        .map(T::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
