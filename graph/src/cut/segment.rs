use crate::{Digest, FEATURES, Pad, SequenceLengths, hash::CanonicalForm};

/// What the model encodes of a connected piece of the pruned graph; equal pieces are one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// BLAKE3-256 of the canonical form in `graph/README.md`.
    pub digest: Digest,
    /// `[n]` opcode ids.
    pub opcodes: Vec<u8>,
    /// `[n, 140]` features, sequences padded with 0.
    pub features: Vec<f32>,
    /// `[n]` lengths of the sequences, where known.
    pub sequence_lengths: Option<Vec<SequenceLengths>>,
    /// Pairs (consumer, producer) of positions in the segment, sorted.
    pub edges: Vec<[u16; 2]>,
    /// Positions of configurable nodes, ascending.
    pub configurable: Vec<u16>,
}

impl Segment {
    /// Digests the canonical form in `graph/README.md`.
    pub(super) fn compute_digest(&self) -> Digest {
        let mut form = CanonicalForm::new(b"hlorank-segment");
        form.count(self.len());
        form.count(self.edges.len());
        form.count(self.configurable.len());
        form.nodes(&self.opcodes, &self.features, self.sequence_lengths.as_deref());
        form.numbers(self.edges.as_flattened().iter().map(|&node| u32::from(node)));
        form.numbers(self.configurable.iter().map(|&node| u32::from(node)));
        form.digest()
    }

    /// Number of nodes; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a segment has at least one node")]
    pub fn len(&self) -> usize {
        self.opcodes.len()
    }

    /// Whether the model's pad value can be had: always for 0, else only where lengths are known.
    #[must_use]
    pub fn can_pad(&self, pad: Pad) -> bool {
        pad == Pad::Zero || self.sequence_lengths.is_some()
    }

    /// Writes `[n, 140]` features, padded as asked where lengths are known, into `rows`.
    pub fn write_features(&self, pad: Pad, rows: &mut [f32]) {
        rows[..self.features.len()].copy_from_slice(&self.features);
        if pad == Pad::Zero {
            return;
        }
        for (row, lengths) in rows.chunks_exact_mut(FEATURES).zip(self.sequence_lengths.iter().flatten()) {
            lengths.pad_row(row, pad);
        }
    }
}
