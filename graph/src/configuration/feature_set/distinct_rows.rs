use crate::configuration::slices::SliceSet;

/// Distinct rows of columns, by their bits.
pub(super) struct DistinctRows {
    known: SliceSet<u32>,
    bits: Vec<u32>,
}

impl DistinctRows {
    pub(super) fn new(columns: usize, most: usize) -> Self {
        Self {
            known: SliceSet::new(columns, most),
            bits: Vec::with_capacity(columns),
        }
    }

    /// Returns the number of a row.
    pub(super) fn insert(&mut self, row: &[f32]) -> u32 {
        self.bits.clear();
        self.bits.extend(row.iter().map(|value| value.to_bits()));
        self.known.insert(&self.bits).0
    }

    /// Returns the rows by number.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.known
            .into_flat()
            .into_iter()
            .map(f32::from_bits)
            .collect()
    }
}
