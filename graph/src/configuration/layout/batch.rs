use std::{collections::HashMap, iter};

use super::entry::LayoutEntry;
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{check_count, check_size, to_u32},
    pace,
};

/// Layout configurations of one graph, packed: a table of distinct entries per slot, and one index per slot for each
/// configuration. Indices of a slot are equal if and only if their entries are.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutBatch {
    configs: usize,
    tables: Vec<Vec<LayoutEntry>>,
    indices: Vec<u16>,
}

/// Maximum number of entries of a table, so that an index fits `u16`.
pub(super) const MAX_TABLE: usize = 1 << 16;

impl LayoutBatch {
    /// Makes a batch of tables and `[configs, slots]` indices. Repeated entries of a table are merged.
    pub fn new(
        configs: usize,
        mut tables: Vec<Vec<LayoutEntry>>,
        mut indices: Vec<u16>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        check_size(configs, tables.len(), limits)?;
        check_count("the index matrix", indices.len(), configs * tables.len())?;
        for (slot, table) in tables.iter().enumerate() {
            check_table(slot, table.len())?;
        }
        // Merging relies on indices that are inside their tables.
        check_indices(&tables, &indices)?;
        merge_repeated(&mut tables, &mut indices);
        Ok(Self {
            configs,
            tables,
            indices,
        })
    }

    /// Number of configurations; at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a batch has at least one configuration"
    )]
    pub fn len(&self) -> usize {
        self.configs
    }

    /// Number of configurable nodes.
    pub fn slots(&self) -> usize {
        self.tables.len()
    }

    /// The distinct entries of a slot.
    pub fn table(&self, slot: usize) -> &[LayoutEntry] {
        &self.tables[slot]
    }

    /// The indices of a configuration, one per slot.
    pub fn row(&self, config: usize) -> &[u16] {
        &self.indices[config * self.slots()..][..self.slots()]
    }

    /// The indices of all configurations, `[configs, slots]`.
    pub(super) fn indices(&self) -> &[u16] {
        &self.indices
    }

    /// Copies the configurations of these numbers, which must be below the length.
    #[must_use]
    pub fn select(&self, numbers: &[usize]) -> Self {
        let indices = numbers
            .iter()
            .flat_map(|&config| self.row(config))
            .copied()
            .collect();
        Self {
            configs: numbers.len(),
            tables: self.tables.clone(),
            indices,
        }
    }

    /// Drops the entries that no configuration has.
    #[must_use]
    pub fn compacted(&self) -> Self {
        // Entries get new indices by their first use, configuration after configuration, as in a
        // batch that is built.
        let mut tables: Vec<EntryTable> = iter::repeat_with(EntryTable::default)
            .take(self.slots())
            .collect();
        let entries =
            (0..self.len()).flat_map(|config| (0..self.slots()).map(move |slot| (config, slot)));
        let indices = entries
            .map(|(config, slot)| tables[slot].intern(self.entry(config, slot)))
            .collect();
        let tables = tables.into_iter().map(|table| table.entries).collect();
        Self {
            configs: self.configs,
            tables,
            indices,
        }
    }

    /// Returns a batch of other configurations: `indices` into the same tables, `[configs, slots]`.
    pub fn with_rows(&self, indices: Vec<u16>) -> Result<Self, ConfigurationError> {
        let configs = indices.len().checked_div(self.slots()).unwrap_or(0);
        check_count("the index matrix", indices.len(), configs * self.slots())?;
        if configs == 0 {
            return Err(ConfigurationError::Empty);
        }
        check_indices(&self.tables, &indices)?;
        Ok(Self {
            configs,
            tables: self.tables.clone(),
            indices,
        })
    }

    /// Number of entries of all configurations that differ from those of the first.
    pub fn changes(&self) -> usize {
        let changes = |row: &[u16]| {
            row.iter()
                .zip(self.row(0))
                .filter(|(index, first)| index != first)
                .count()
        };
        (0..self.len())
            .map(|config| changes(self.row(config)))
            .sum()
    }

    /// The entry of a configuration at a slot.
    pub fn entry(&self, config: usize, slot: usize) -> LayoutEntry {
        self.tables[slot][usize::from(self.row(config)[slot])]
    }
}

pub(super) fn check_table(slot: usize, entries: usize) -> Result<(), ConfigurationError> {
    if entries > MAX_TABLE {
        let what = format!("the table of slot {slot}");
        return Err(ConfigurationError::TooLong {
            what,
            found: entries,
            limit: MAX_TABLE,
        });
    }
    Ok(())
}

/// Number of configurations between two pauses.
const CONFIGS: usize = 64;

fn check_indices(tables: &[Vec<LayoutEntry>], indices: &[u16]) -> Result<(), ConfigurationError> {
    let lengths: Vec<u32> = tables.iter().map(|table| to_u32(table.len())).collect();
    // Without slots there are no indices, and the length of a chunk must not be 0.
    let rows = indices.chunks_exact(tables.len().max(1));
    for (config, row) in pace::in_steps(CONFIGS, rows).enumerate() {
        if let Some(slot) = slot_outside(row, &lengths) {
            return Err(ConfigurationError::IndexOutsideTable {
                config,
                slot,
                index: row[slot].into(),
                entries: tables[slot].len(),
            });
        }
    }
    Ok(())
}

/// Returns the first slot whose index is outside its table.
#[inline]
fn slot_outside(row: &[u16], lengths: &[u32]) -> Option<usize> {
    let is_outside = |(&index, &length): (&u16, &u32)| u32::from(index) >= length;
    let pairs = || row.iter().zip(lengths);
    // Without a branch for each index, this takes several of them at a time. Which one is outside
    // is looked for only if one is.
    let has_outside = pairs().fold(false, |outside, pair| outside | is_outside(pair));
    if has_outside {
        pairs().position(is_outside)
    } else {
        None
    }
}

/// Merges repeated entries of each table, so that equal configurations have equal indices.
fn merge_repeated(tables: &mut [Vec<LayoutEntry>], indices: &mut [u16]) {
    let slots = tables.len();
    let mut sorted = Vec::new();
    for (slot, table) in pace::in_steps(1, tables.iter_mut()).enumerate() {
        // Tables rarely repeat entries. Sorting a copy shows that faster than a hash table does.
        table.clone_into(&mut sorted);
        sorted.sort_unstable();
        if sorted
            .array_windows()
            .any(|[entry, next]: &[_; 2]| entry == next)
        {
            let mut interner = EntryTable::default();
            let merged: Vec<u16> = table.iter().map(|&entry| interner.intern(entry)).collect();
            *table = interner.entries;
            for index in indices.iter_mut().skip(slot).step_by(slots) {
                *index = merged[usize::from(*index)];
            }
        }
    }
}

/// Distinct entries in order of first use.
#[derive(Debug, Default)]
struct EntryTable {
    entries: Vec<LayoutEntry>,
    index_of: HashMap<LayoutEntry, u16>,
}

impl EntryTable {
    /// Returns the index of an entry. The caller keeps the table within [`MAX_TABLE`].
    fn intern(&mut self, entry: LayoutEntry) -> u16 {
        *self.index_of.entry(entry).or_insert_with(|| {
            self.entries.push(entry);
            u16::try_from(self.entries.len() - 1).unwrap_or(u16::MAX)
        })
    }
}

/// Builds a batch from configurations that are given entry by entry.
#[derive(Debug)]
pub struct LayoutBatchBuilder {
    limits: Limits,
    tables: Vec<EntryTable>,
    indices: Vec<u16>,
    configs: usize,
}

impl LayoutBatchBuilder {
    /// A batch for a graph of `slots` configurable nodes.
    pub fn new(slots: usize, limits: Limits) -> Self {
        let tables = iter::repeat_with(EntryTable::default).take(slots).collect();
        Self {
            limits,
            tables,
            indices: Vec::new(),
            configs: 0,
        }
    }

    /// Number of configurations that were added.
    pub(super) fn len(&self) -> usize {
        self.configs
    }

    /// Adds a configuration: one entry per slot.
    pub fn push(&mut self, entries: &[LayoutEntry]) -> Result<(), ConfigurationError> {
        check_size(self.configs + 1, self.tables.len(), &self.limits)?;
        let what = format_args!("configuration {}", self.configs);
        check_count(&what, entries.len(), self.tables.len())?;
        let slots = self.tables.iter_mut().zip(entries).enumerate();
        for (slot, (table, &entry)) in pace::in_steps(pace::STEPS, slots) {
            self.indices.push(table.intern(entry));
            check_table(slot, table.entries.len())?;
        }
        self.configs += 1;
        Ok(())
    }

    /// Returns the batch; fails if no configuration was added.
    pub fn build(self) -> Result<LayoutBatch, ConfigurationError> {
        check_size(self.configs, self.tables.len(), &self.limits)?;
        let tables = self.tables.into_iter().map(|table| table.entries).collect();
        Ok(LayoutBatch {
            configs: self.configs,
            tables,
            indices: self.indices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32) -> LayoutEntry {
        LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap()
    }

    #[test]
    fn repeated_entries_are_merged() {
        let tables = vec![vec![entry(1), entry(2), entry(1)], vec![entry(3)]];
        let batch =
            LayoutBatch::new(3, tables, vec![0, 0, 1, 0, 2, 0], &Limits::default()).unwrap();
        assert_eq!(batch.row(0), batch.row(2));
        assert_eq!(batch.table(0), [entry(1), entry(2)]);
        assert_eq!(batch.entry(1, 0), entry(2));
    }

    #[test]
    fn other_configurations_may_have_the_same_tables() {
        let tables = vec![vec![entry(1), entry(2)], vec![entry(3), entry(4)]];
        let batch = LayoutBatch::new(1, tables, vec![0, 0], &Limits::default()).unwrap();
        let others = batch.with_rows(vec![1, 0, 1, 1]).unwrap();
        assert_eq!((others.len(), others.entry(0, 0)), (2, entry(2)));
        let compacted = others.compacted();
        assert_eq!(compacted.table(0), [entry(2)]);
        assert_eq!(compacted.table(1), [entry(3), entry(4)]);
        for config in [0, 1] {
            let entries = |batch: &LayoutBatch| [0, 1].map(|slot| batch.entry(config, slot));
            assert_eq!(entries(&compacted), entries(&others));
        }
        assert_eq!(batch.with_rows(vec![]), Err(ConfigurationError::Empty));
        assert!(matches!(
            batch.with_rows(vec![0]),
            Err(ConfigurationError::WrongCount { .. })
        ));
        let outside = batch.with_rows(vec![0, 2]);
        assert!(matches!(
            outside,
            Err(ConfigurationError::IndexOutsideTable { slot: 1, .. })
        ));
    }

    #[test]
    fn a_builder_gives_what_was_pushed() {
        let mut builder = LayoutBatchBuilder::new(2, Limits::default());
        builder.push(&[entry(5), entry(6)]).unwrap();
        builder.push(&[entry(5), entry(7)]).unwrap();
        assert!(builder.push(&[entry(5)]).is_err());
        let batch = builder.build().unwrap();
        assert_eq!(batch.row(1), [0, 1]);
        assert_eq!(batch.entry(1, 1), entry(7));
    }
}
