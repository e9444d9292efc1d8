//! Canonical byte forms and their BLAKE3 digests. `graph/README.md` specifies them and has test vectors.

use std::fmt;

use crate::SequenceLengths;

/// Raised when the canonical form of a graph or segment changes.
const FORMAT_VERSION: u32 = 1;

/// A digest of 256 bits, BLAKE3 by default. It is printed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Digest({self})")
    }
}

impl Digest {
    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }

    /// Returns the digest of the parts in order. Digests of different purposes differ even if the parts are equal.
    #[must_use]
    pub fn of_parts<'a>(purpose: &str, parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(purpose);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// Hashes a canonical form. Numbers are little endian and buffered.
pub(crate) struct CanonicalForm {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl CanonicalForm {
    pub(crate) fn new(magic: &[u8]) -> Self {
        let mut form = Self { hasher: blake3::Hasher::new(), buffer: Vec::new() };
        form.bytes(magic);
        form.bytes(&FORMAT_VERSION.to_le_bytes());
        form
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.bytes(&(count as u64).to_le_bytes());
    }

    pub(crate) fn nodes(&mut self, opcodes: &[u8], features: &[f32], lengths: Option<&[SequenceLengths]>) {
        self.bytes(opcodes);
        self.buffered(features.iter().map(|feature| feature.to_le_bytes()));
        self.bytes(&[u8::from(lengths.is_some())]);
        self.buffered(lengths.unwrap_or(&[]).iter().map(|lengths| lengths.0));
    }

    pub(crate) fn numbers(&mut self, numbers: impl Iterator<Item = u32>) {
        self.buffered(numbers.map(u32::to_le_bytes));
    }

    fn buffered(&mut self, quads: impl Iterator<Item = [u8; 4]>) {
        const FLUSH_BYTES: usize = 64 << 10;
        for quad in quads {
            self.buffer.extend_from_slice(&quad);
            if self.buffer.len() >= FLUSH_BYTES {
                self.flush();
            }
        }
        self.flush();
    }

    fn flush(&mut self) {
        self.hasher.update(&self.buffer);
        self.buffer.clear();
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}
