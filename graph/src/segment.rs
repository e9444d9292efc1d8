use crate::{Digest, FEATURES, Pad, SequenceLengths, hash::CanonicalForm};

/// A connected piece of the pruned graph as the model encodes it. Equal pieces are one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// BLAKE3-256 of the canonical form in `graph/README.md`.
    pub digest: Digest,
    /// `[n]` opcode ids.
    pub opcodes: Vec<u8>,
    /// `[n, 140]` features, sequences padded with 0.
    pub features: Vec<f32>,
    /// `[n]` lengths of the sequences, if they are known.
    pub sequence_lengths: Option<Vec<SequenceLengths>>,
    /// Pairs (consumer, producer) of positions in the segment, sorted.
    pub edges: Vec<[u16; 2]>,
    /// Positions of configurable nodes, ascending.
    pub configurable: Vec<u16>,
}

impl Segment {
    /// Computes the digest of the canonical form in `graph/README.md`. `kernel` is the hash of the graph, if its loops do not
    /// follow from the segment.
    pub(crate) fn compute_digest(&self, kernel: Option<Digest>) -> Digest {
        let mut form = CanonicalForm::new(b"hlorank-segment");
        form.count(self.len());
        form.count(self.edges.len());
        form.count(self.configurable.len());
        form.nodes(
            &self.opcodes,
            &self.features,
            self.sequence_lengths.as_deref(),
        );
        form.numbers(
            self.edges
                .as_flattened()
                .iter()
                .map(|&node| u32::from(node)),
        );
        form.numbers(self.configurable.iter().map(|&node| u32::from(node)));
        if let Some(kernel) = kernel {
            form.bytes(b"kernel");
            form.bytes(&kernel.0);
        }
        form.digest()
    }

    /// Number of nodes; at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a segment has at least one node"
    )]
    pub fn len(&self) -> usize {
        self.opcodes.len()
    }

    /// Writes `[n, 140]` features into `rows`, padded with `pad` if the lengths of sequences are known.
    pub fn write_features(&self, pad: Pad, rows: &mut [f32]) {
        rows[..self.features.len()].copy_from_slice(&self.features);
        if pad == Pad::Zero {
            return;
        }
        for (row, lengths) in rows
            .chunks_exact_mut(FEATURES)
            .zip(self.sequence_lengths.iter().flatten())
        {
            lengths.pad_row(row, pad);
        }
    }
}
