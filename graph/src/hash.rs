//! Canonical byte forms and their BLAKE3 digests. `graph/README.md` specifies them and has test vectors.

use crate::{Digest, SequenceLengths, pace};

/// Raised when the canonical form of a graph or segment changes.
const FORMAT_VERSION: u32 = 1;

/// Hashes a canonical form. Numbers are little endian and buffered.
pub(crate) struct CanonicalForm {
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl CanonicalForm {
    pub(crate) fn new(magic: &[u8]) -> Self {
        let mut form = Self {
            hasher: blake3::Hasher::new(),
            buffer: Vec::new(),
        };
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

    pub(crate) fn nodes(
        &mut self,
        opcodes: &[u8],
        features: &[f32],
        lengths: Option<&[SequenceLengths]>,
    ) {
        self.bytes(opcodes);
        self.floats(features);
        self.bytes(&[u8::from(lengths.is_some())]);
        self.buffered(lengths.unwrap_or(&[]).iter().map(|lengths| lengths.0));
    }

    pub(crate) fn floats(&mut self, floats: &[f32]) {
        self.buffered(floats.iter().map(|float| float.to_le_bytes()));
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
        pace::pause();
    }

    pub(crate) fn digest(self) -> Digest {
        Digest(*self.hasher.finalize().as_bytes())
    }
}
