use std::fmt;

use crate::pace;

/// A digest of 256 bits, BLAKE3 by default. It is printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// Number of bytes that are hashed between two pauses.
const HASHED_BYTES: usize = 256 << 10;

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(formatter, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl Digest {
    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text)
            .ok()
            .map(|hash| Self(*hash.as_bytes()))
    }

    /// Returns the digest of the parts in order. Digests of different purposes differ even if the parts are equal.
    pub fn of_parts<'a>(purpose: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            for some in part.chunks(HASHED_BYTES) {
                hasher.update(some);
                pace::pause();
            }
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// Writes bytes in hexadecimal digits, two for each.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    // A string takes all that is written.
    let _ = write_hex(&mut digits, bytes);
    digits
}

fn write_hex(to: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(to, "{byte:02x}"))
}

/// Reads what [`to_hex`] wrote.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let (pairs, rest) = text.as_bytes().as_chunks();
    let bytes = rest.is_empty().then(|| pairs.iter().map(byte).collect());
    bytes.flatten()
}
