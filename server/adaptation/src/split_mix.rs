//! Hashes of numbers that are the same everywhere.

/// A number below `count`, by a hash.
#[expect(clippy::cast_possible_truncation, reason = "it is below a usize")]
pub fn below(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}

/// One step of `SplitMix64` (Steele, Lea and Flood, 2014), as `models/artifacts.md` writes it.
pub fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
