//! Changes an input so that it stays close to what its reader takes: past the first check, and then wrong.

mod bytes;
mod message;
mod npz;
mod tokens;

use fastrand::Rng;

pub use self::{
    message::{field_count, mutate_message},
    npz::mutate_npz,
    tokens::{mutate_json, mutate_text},
};

/// Changes an input; it may take parts of another one.
pub type Mutate = fn(input: &mut Vec<u8>, other: &[u8], random: &mut Rng);

/// Where counts, lengths, signs and widths end.
const EDGES: [u64; 24] = [
    0,
    1,
    2,
    3,
    6,
    7,
    63,
    64,
    65,
    127,
    128,
    255,
    256,
    257,
    65_535,
    65_536,
    117_648,
    117_649,
    i32::MAX as u64,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
];

/// A number at which something may go wrong, or a small one, or any.
fn number(random: &mut Rng) -> u64 {
    match random.u8(..8) {
        0 | 1 => EDGES[random.usize(..EDGES.len())],
        2 => EDGES[random.usize(..EDGES.len())].wrapping_neg(),
        3 => random.u64(..),
        _ => random.u64(..24),
    }
}

/// How often to change one input: mostly once.
fn changes(random: &mut Rng) -> usize {
    let mut changes = 1;
    while changes < 12 && random.bool() {
        changes += 1;
    }
    changes
}

/// A part of `0..length`, of at most so many; not empty unless there is nothing.
fn part(length: usize, most: usize, random: &mut Rng) -> std::ops::Range<usize> {
    if length == 0 {
        return 0..0;
    }
    let start = random.usize(..length);
    let end = start + 1 + random.usize(..most.min(length - start));
    start..end.min(length)
}
