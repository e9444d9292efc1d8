use std::fmt;

use crate::pace;

/// A digest of 256 bits, BLAKE3 by default. It is printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

/// Number of bytes that are hashed between two pauses.
const HASHED_BYTES: usize = 256 << 10;

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
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
