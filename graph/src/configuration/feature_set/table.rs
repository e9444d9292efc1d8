use super::distinct_rows::{DistinctRows, not_finite};
use crate::{ConfigurationError, configuration::checks::check_count};

/// The table of rows of a message.
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
    /// The number of each row among the distinct ones; [`UNUSED`] before its first use.
    numbers: Vec<u32>,
    rows: DistinctRows,
}

/// No table has this many rows.
const UNUSED: u32 = u32::MAX;

impl<'a> Table<'a> {
    /// Makes a table of little-endian values, with at least one column.
    pub(super) fn new(bytes: &'a [u8], columns: usize) -> Result<Self, ConfigurationError> {
        let row_bytes = columns * size_of::<f32>();
        let expected = bytes.len().next_multiple_of(row_bytes);
        check_count("rows (in bytes)", bytes.len(), expected)?;
        let entries = bytes.len() / row_bytes;
        Ok(Self {
            bytes,
            row_bytes,
            numbers: vec![UNUSED; entries],
            rows: DistinctRows::new(columns, entries),
        })
    }

    /// Number of rows of the message.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the number of a row among the distinct ones; `None` if it is outside the table.
    pub(super) fn number(&mut self, index: u32) -> Result<Option<u32>, ConfigurationError> {
        let entry = index as usize;
        let Some(number) = self.numbers.get_mut(entry) else {
            return Ok(None);
        };
        // Rows of a table may be equal or unused. They are read at their first use, so that the
        // numbers are in the order of the uses, as they are for the dense form of the same
        // configurations.
        if *number == UNUSED {
            let row = &self.bytes[entry * self.row_bytes..][..self.row_bytes];
            let inserted = self.rows.insert(row);
            *number = inserted
                .map_err(|column| not_finite(&format!("row {index} of the table"), column))?;
        }
        Ok(Some(*number))
    }

    /// Returns the distinct rows that were used, by number.
    pub(super) fn into_values(self) -> Vec<f32> {
        self.rows.into_values()
    }
}
