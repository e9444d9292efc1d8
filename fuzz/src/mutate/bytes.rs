//! Bytes of which nothing is known.

use fastrand::Rng;

use super::{number, part};

/// Changes some bytes once.
pub(super) fn mutate_once(input: &mut Vec<u8>, other: &[u8], random: &mut Rng) {
    if input.is_empty() {
        input.extend_from_slice(&other[part(other.len(), 64, random)]);
        return;
    }
    let at = random.usize(..input.len());
    match random.u8(..8) {
        0 => input[at] ^= 1 << random.u8(..8),
        1 => input[at] = random.u8(..),
        2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][random.usize(..5)],
        3 => {
            let bytes = number(random).to_le_bytes();
            let width = [1, 2, 4, 8][random.usize(..4)].min(input.len() - at);
            input[at..at + width].copy_from_slice(&bytes[..width]);
        }
        4 => drop(input.drain(part(input.len(), 64, random))),
        5 => {
            let copied = input[part(input.len(), 64, random)].to_vec();
            input.splice(at..at, copied);
        }
        6 => {
            let taken = other[part(other.len(), 64, random)].to_vec();
            let replaced = at..(at + random.usize(..=taken.len())).min(input.len());
            input.splice(replaced, taken);
        }
        _ => input.truncate(at),
    }
}
