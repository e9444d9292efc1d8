use super::LOOP_COLUMNS;
use crate::{Digest, opcode};

/// Number of features of a node in [`FeatureSet::TPUGRAPHS`].
pub const FEATURES: usize = FeatureSet::TPUGRAPHS.node_features();

/// Groups of adjacent columns in order: name and width.
type NamedColumns = &'static [(&'static str, usize)];

/// A named set of features: the columns of nodes and configurations, and the opcode table. A model works only with
/// the feature set that it was trained with.
#[derive(Debug, PartialEq, Eq)]
pub struct FeatureSet {
    name: &'static str,
    /// Raised when the values of a column change and its name does not.
    version: u32,
    node_columns: NamedColumns,
    configuration_columns: NamedColumns,
    /// Columns of a tile that follow from the loops of its kernel, by group; empty if a model does not take them.
    loop_columns: &'static [(&'static str, &'static [&'static str])],
    opcodes: &'static [&'static str],
}

impl FeatureSet {
    /// The 140 features of `TpuGraphs` (spec §4), which the featurizer of this crate computes.
    pub const TPUGRAPHS: &'static Self = &Self {
        name: "tpugraphs-140",
        version: 1,
        node_columns: &NODE_COLUMNS,
        configuration_columns: &CONFIGURATION_COLUMNS,
        loop_columns: &[],
        opcodes: &opcode::NAMES,
    };

    /// The same, and for each tile the [columns of loops](LOOP_COLUMNS) behind its 24 features.
    pub const LOOPS: &'static Self = &Self {
        name: "tpugraphs-140-loops",
        loop_columns: &LOOP_COLUMNS,
        ..*Self::TPUGRAPHS
    };

    /// Every feature set that this crate knows.
    pub const ALL: [&'static Self; 2] = [Self::TPUGRAPHS, Self::LOOPS];

    /// Returns the feature set with this digest, which the manifest of a model holds.
    pub fn by_digest(digest: Digest) -> Option<&'static Self> {
        Self::ALL.into_iter().find(|set| set.digest() == digest)
    }

    /// Returns the name, such as `tpugraphs-140`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the number of features of a node.
    pub const fn node_features(&self) -> usize {
        // A constant function may neither use iterators nor `for`.
        let mut features = 0;
        let mut rest = self.node_columns;
        while let [(_, width), others @ ..] = rest {
            (features, rest) = (features + *width, others);
        }
        features
    }

    /// Returns the groups of columns of a node in order: name and width.
    pub const fn node_columns(&self) -> &'static [(&'static str, usize)] {
        self.node_columns
    }

    /// Returns whether the set has the columns of loops.
    pub const fn has_loops(&self) -> bool {
        !self.loop_columns.is_empty()
    }

    /// Returns the opcode table: the opcode at position `i` has id `i + 1`, and every other opcode has id 0.
    pub const fn opcodes(&self) -> &'static [&'static str] {
        self.opcodes
    }

    /// Returns the digest of the columns and the opcode table, which identifies the set.
    pub fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("hlorank-features {}\n", self.version).as_bytes());
        for (name, width) in self.node_columns.iter().chain(self.configuration_columns) {
            hasher.update(format!("{name} {width}\n").as_bytes());
        }
        for (group, names) in self.loop_columns {
            for name in *names {
                hasher.update(format!("{group}.{name}\n").as_bytes());
            }
        }
        for name in self.opcodes {
            hasher.update(format!("{name}\n").as_bytes());
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

/// Columns of a node in order: the name of each group of adjacent columns, and its width.
const NODE_COLUMNS: [(&str, usize); 32] = [
    ("is_root", 1),
    ("element_size_in_bits", 1),
    ("shape.element_type", 19),
    ("shape.dimensions", 8),
    ("shape.tuple_shapes_size", 1),
    ("parameter_number", 1),
    ("dimensions", 6),
    ("window.size", 8),
    ("window.stride", 8),
    ("window.padding_low", 8),
    ("window.padding_high", 8),
    ("window.window_dilation", 8),
    ("window.base_dilation", 8),
    ("window.window_reversal", 8),
    ("convolution.input_batch_dimension", 1),
    ("convolution.input_feature_dimension", 1),
    ("convolution.input_spatial_dimensions", 4),
    ("convolution.kernel_input_feature_dimension", 1),
    ("convolution.kernel_output_feature_dimension", 1),
    ("convolution.kernel_spatial_dimensions", 4),
    ("convolution.output_batch_dimension", 1),
    ("convolution.output_feature_dimension", 1),
    ("feature_group_count", 1),
    ("batch_group_count", 1),
    ("slice.start", 4),
    ("slice.stride", 4),
    ("slice.limit", 4),
    ("dynamic_slice_sizes", 4),
    ("padding.edge_padding_low", 4),
    ("padding.edge_padding_high", 4),
    ("is_stable", 1),
    ("shape.layout.minor_to_major", 6),
];

/// Columns of a configuration, which a model reads next to those of the nodes.
const CONFIGURATION_COLUMNS: [(&str, usize); 3] = [
    ("config.layout", 18),
    ("config.tile", 24),
    ("config.layout.values", 8),
];

/// First column and width of each sequence: a list without sum and product, whose unused places hold the [`Pad`]
/// value.
const SEQUENCES: [(usize, usize); 4] = [(31, 6), (95, 4), (101, 4), (134, 6)];

/// The value of the unused places of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pad {
    /// 0, as in the official data.
    #[default]
    Zero,
    /// −1, as in `TGraph`'s data, which tells an unused place from dimension 0.
    MinusOne,
}

impl Pad {
    /// Returns the value as a feature.
    pub fn value(self) -> f32 {
        match self {
            Self::Zero => 0.0,
            Self::MinusOne => -1.0,
        }
    }

    /// Returns the pad of `[n, 140]` features: −1 if at least one sequence contains −1 and every sequence has −1 in all
    /// places after its used ones, else 0.
    pub fn of_features(features: &[f32]) -> Self {
        let sequences = || {
            let rows = features.chunks_exact(FEATURES);
            rows.flat_map(|row| SEQUENCES.map(|(start, width)| &row[start..start + width]))
        };
        // Lists of XLA hold no negative numbers, so the first one is the first unused place.
        let used = |sequence: &[f32]| sequence.iter().take_while(|&&value| value >= 0.0).count();
        let ends_in_pad = |sequence: &[f32]| {
            sequence[used(sequence)..]
                .iter()
                .all(|&value| value == -1.0)
        };
        // A sequence without unused places fits either pad, so one −1 is needed for a decision.
        let has_pad = sequences().any(|sequence| sequence.contains(&-1.0));
        if has_pad && sequences().all(ends_in_pad) {
            Self::MinusOne
        } else {
            Self::Zero
        }
    }

    /// Returns the pad with this value, which comes from a request or a manifest.
    pub fn from_value(value: i32) -> Option<Self> {
        match value {
            0 => Some(Self::Zero),
            -1 => Some(Self::MinusOne),
            _ => None,
        }
    }
}

/// Number of used places of each sequence of a node. It allows a change from one [`Pad`] to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceLengths(pub [u8; 4]);

impl SequenceLengths {
    /// Returns the lengths of a row that is padded with −1. The lists of XLA hold no negative numbers.
    pub fn of_row(row: &[f32]) -> Self {
        let mut lengths = [0; 4];
        for (length, (start, width)) in lengths.iter_mut().zip(SEQUENCES) {
            let used = row[start..start + width]
                .iter()
                .take_while(|&&value| value >= 0.0)
                .count();
            *length = u8::try_from(used).unwrap_or(u8::MAX);
        }
        Self(lengths)
    }

    /// Writes `pad` into the unused places of a row.
    pub fn pad_row(self, row: &mut [f32], pad: Pad) {
        for (length, (start, width)) in self.0.into_iter().zip(SEQUENCES) {
            row[start + usize::from(length).min(width)..start + width].fill(pad.value());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FeatureSet;

    const DIGEST: &str = "719fd4e8c05f3f649a07ef68ecab9cb8c4c1ba4a0730b4d84c7083b0da5cbf64";

    #[test]
    fn a_feature_set_is_found_by_its_digest() {
        let set = FeatureSet::TPUGRAPHS;
        assert_eq!(set.name(), "tpugraphs-140");
        assert_eq!(
            FeatureSet::by_digest(Digest::from_hex(DIGEST).unwrap()),
            Some(set)
        );
        assert_eq!(
            FeatureSet::by_digest(FeatureSet::LOOPS.digest()),
            Some(FeatureSet::LOOPS)
        );
        assert_eq!(FeatureSet::by_digest(Digest([0; 32])), None);
    }

    #[test]
    fn unused_places_say_what_sequences_are_padded_with() {
        let pad = |places: [f32; 6]| {
            let mut features = [0.0; 2 * FEATURES];
            features[FEATURES + SEQUENCES[0].0..][..6].copy_from_slice(&places);
            Pad::of_features(&features)
        };
        assert_eq!(pad([3.0, 0.0, -1.0, -1.0, -1.0, -1.0]), Pad::MinusOne);
        for places in [
            [3.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [3.0, -1.0, 3.0, -1.0, -1.0, -1.0],
            [3.0, -1.0, -2.0, -1.0, -1.0, -1.0],
        ] {
            assert_eq!(pad(places), Pad::Zero, "{places:?}");
        }
    }

    #[test]
    fn sequences_are_columns_of_the_feature_set() {
        let mut next = 0;
        let columns = FeatureSet::TPUGRAPHS
            .node_columns()
            .iter()
            .map(|&(name, width)| {
                next += width;
                (name, (next - width, width))
            });
        let sequences = columns
            .filter(|(_, place)| SEQUENCES.contains(place))
            .map(|(name, _)| name);
        assert_eq!(
            sequences.collect::<Vec<_>>(),
            [
                "dimensions",
                "convolution.input_spatial_dimensions",
                "convolution.kernel_spatial_dimensions",
                "shape.layout.minor_to_major"
            ]
        );
    }
}
