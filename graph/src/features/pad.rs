use super::set::FEATURES;

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
    #[must_use]
    pub fn value(self) -> f32 {
        match self {
            Self::Zero => 0.0,
            Self::MinusOne => -1.0,
        }
    }

    /// Returns the pad of `[n, 140]` features: −1 if at least one sequence contains −1 and every sequence has −1 in all
    /// places after its used ones, else 0.
    #[must_use]
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
    #[must_use]
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
    #[must_use]
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
