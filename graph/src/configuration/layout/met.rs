use super::LayoutBatch;
use crate::configuration::slices::SliceSet;

/// The local configurations that one occurrence met, by the indices of their entries, and their rows.
pub(super) enum Met {
    /// The row of every combination of indices; [`NO_ROW`] if it was not met.
    Table {
        /// What an index of each slot counts.
        strides: Vec<usize>,
        rows: Vec<u32>,
    },
    /// Those that were met, where there are too many combinations.
    Set(SliceSet<u16>, Vec<u32>),
}

/// Maximum number of combinations in a table: 16 KiB.
const MAX_TABLE: usize = 4096;

/// Maximum number of combinations in a table, for each configuration of the batch. A larger table takes longer to fill than it
/// saves.
const MAX_TABLE_PER_CONFIG: usize = 8;

/// No batch has this many rows.
const NO_ROW: u32 = u32::MAX;

impl Met {
    /// Nothing was met yet of the configurations of a batch at these slots.
    pub(super) fn new(slots: &[usize], batch: &LayoutBatch) -> Self {
        // A combination is a number with one digit per slot, whose base is the length of the slot's
        // table.
        let mut strides = Vec::with_capacity(slots.len());
        let mut combinations = 1_usize;
        for &slot in slots {
            strides.push(combinations);
            combinations = combinations.saturating_mul(batch.table(slot).len());
        }
        if combinations > MAX_TABLE.min(MAX_TABLE_PER_CONFIG * batch.len()) {
            return Self::Set(SliceSet::new(slots.len(), batch.len()), Vec::new());
        }
        Self::Table {
            strides,
            rows: vec![NO_ROW; combinations],
        }
    }

    /// Returns the row of a local configuration if it was added.
    pub(super) fn row(&self, indices: &[u16]) -> Option<u32> {
        match self {
            Self::Table { strides, rows } => {
                Some(rows[place(strides, indices)]).filter(|&row| row != NO_ROW)
            }
            Self::Set(known, rows) => known.find(indices).map(|number| rows[number as usize]),
        }
    }

    /// Adds a local configuration that was not added yet.
    pub(super) fn add(&mut self, indices: &[u16], row: u32) {
        match self {
            Self::Table { strides, rows } => rows[place(strides, indices)] = row,
            Self::Set(known, rows) => {
                // The set numbers slices in the order of insertion, which is that of `rows`.
                known.insert(indices);
                rows.push(row);
            }
        }
    }
}

fn place(strides: &[usize], indices: &[u16]) -> usize {
    strides
        .iter()
        .zip(indices)
        .map(|(stride, &index)| stride * usize::from(index))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LayoutBatchBuilder, LayoutEntry, Limits};

    /// A batch of `configs` configurations of two slots, whose tables have this many entries.
    fn batch(configs: usize, entries: usize) -> LayoutBatch {
        let mut builder = LayoutBatchBuilder::new(2, Limits::default());
        for config in 0..configs {
            let number = u32::try_from(config % entries).unwrap();
            let entry = LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap();
            builder.push(&[entry, entry]).unwrap();
        }
        builder.build().unwrap()
    }

    #[test]
    fn tables_and_sets_find_the_rows_that_were_added() {
        let (few, many) = (batch(9, 3), batch(9, 9));
        for (batch, is_table) in [(few, true), (many, false)] {
            let mut met = Met::new(&[0, 1], &batch);
            assert_eq!(matches!(met, Met::Table { .. }), is_table);
            let pairs = [[0, 0], [0, 1], [1, 0], [2, 2], [2, 1]];
            for (row, pair) in (10..).zip(&pairs) {
                assert_eq!(met.row(pair), None);
                met.add(pair, row);
            }
            let rows: Vec<_> = pairs.iter().map(|pair| met.row(pair)).collect();
            assert_eq!(rows, (10..15).map(Some).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_occurrence_without_slots_has_one_combination() {
        let mut met = Met::new(&[], &batch(1, 1));
        assert_eq!(met.row(&[]), None);
        met.add(&[], 7);
        assert_eq!(met.row(&[]), Some(7));
    }
}
