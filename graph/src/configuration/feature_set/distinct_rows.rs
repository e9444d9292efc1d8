use crate::{ConfigurationError, configuration::slices::SliceSet};

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

    /// Returns the number of a row of little-endian values, with 0 for −0. Fails with the number of
    /// a column that is not finite.
    pub(super) fn insert(&mut self, row: &[u8]) -> Result<u32, usize> {
        let (quads, _) = row.as_chunks::<4>();
        let values = quads.iter().map(|quad| f32::from_le_bytes(*quad));
        // Rows are equal if their bits are, because a float is neither hashed nor always equal to
        // itself. The sum with 0 turns −0, whose bits differ from those of 0, into 0.
        self.bits.clear();
        self.bits
            .extend(values.map(|value| (value + 0.0).to_bits()));
        let is_refused = |&bits: &u32| !f32::from_bits(bits).is_finite();
        match self.bits.iter().position(is_refused) {
            Some(column) => Err(column),
            None => Ok(self.known.insert(&self.bits).0),
        }
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

/// Returns the error of a value that is not finite.
pub(super) fn not_finite(place: &str, column: usize) -> ConfigurationError {
    ConfigurationError::NotFinite {
        what: format!("{place}, column {column}"),
    }
}
