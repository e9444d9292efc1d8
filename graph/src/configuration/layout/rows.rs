use std::mem::take;

use super::{
    batch::LayoutBatch,
    entry::{LAYOUT_VALUES, LayoutEntry},
};
use crate::{
    Occurrence, Segment, SegmentedGraph,
    configuration::{
        checks::to_u32,
        distinct::SliceSet,
        rows::{
            ConfigValues, FoundRows, LocalConfigurations, MAX_ROWS, Row, RowFinder, TooManyRows,
        },
    },
};

/// Finds the rows of layouts. Most occurrences meet a local configuration again, which is found by its indices; across
/// the occurrences of one segment, local configurations are compared by content.
pub(super) struct LayoutRows {
    batch: LayoutBatch,
    /// The occurrences that see slots. The rows of the others are common to all configurations.
    occurrences: Vec<usize>,
    /// Which of those sees each slot.
    occurrence_of_slot: Vec<u32>,
    /// For each of those, the local configurations met there.
    by_indices: Vec<OccurrenceRows>,
    /// Per segment, the local configurations met there, and their rows.
    by_entries: Vec<(SliceSet<LayoutEntry>, Vec<u32>)>,
    /// Number of local configurations in `by_indices`.
    met: usize,
    entries: Vec<LayoutEntry>,
    /// For each of those occurrences, whether its local configuration differs from that of the configuration before.
    changed: Vec<bool>,
}

/// Per segment, its local configurations: one entry per configurable node.
struct LocalLayouts(Vec<SliceSet<LayoutEntry>>);

/// Number of slots that are compared at a time.
const COMPARED: usize = 8;

/// Number of entries that a hasher is given at a time.
const HASHED: usize = 16;

/// Marks a node that is not configurable in the model input `config`.
const NOT_CONFIGURABLE: i64 = -2;

impl LayoutRows {
    pub(super) fn new(batch: LayoutBatch, graph: &SegmentedGraph) -> Self {
        let all = graph.occurrences.iter().enumerate();
        let occurrences: Vec<usize> = all
            .filter(|(_, occurrence)| !occurrence.slots.is_empty())
            .map(|(number, _)| number)
            .collect();
        let by_indices = occurrences
            .iter()
            .map(|&number| OccurrenceRows::new(&graph.occurrences[number].slots, &batch));
        let segments = graph.segments.iter();
        let by_entries = segments.map(|segment| {
            let slots = segment.configurable.len();
            (SliceSet::new(slots, batch.len()), Vec::new())
        });
        Self {
            by_indices: by_indices.collect(),
            by_entries: by_entries.collect(),
            batch,
            occurrence_of_slot: occurrence_of_slot(graph, &occurrences),
            met: 0,
            entries: Vec::new(),
            changed: vec![false; occurrences.len()],
            occurrences,
        }
    }

    /// Notes which occurrences see a slot that differs between two configurations.
    fn note_changes(&mut self, config: usize, before: usize) {
        let (row, row_rest) = self.batch.row(config).as_chunks::<COMPARED>();
        let (before, before_rest) = self.batch.row(before).as_chunks::<COMPARED>();
        let (occurrences, occurrences_rest) = self.occurrence_of_slot.as_chunks::<COMPARED>();
        let changed = &mut self.changed;
        let mut compare = |row: &[u16], before: &[u16], occurrences: &[u32]| {
            for ((index, before), &occurrence) in row.iter().zip(before).zip(occurrences) {
                changed[occurrence as usize] |= index != before;
            }
        };
        // Neighbours in a search differ in few slots, so most blocks are equal and no slot of them
        // is looked at. Arrays of a fixed length are compared without a call.
        for ((row, before), occurrences) in row.iter().zip(before).zip(occurrences) {
            if row != before {
                compare(row, before, occurrences);
            }
        }
        compare(row_rest, before_rest, occurrences_rest);
    }

    /// Returns the row of a configuration at an occurrence, and adds it if it is a new one.
    fn row(
        &mut self,
        graph: &SegmentedGraph,
        config: usize,
        occurrence: usize,
        rows: &mut Vec<Row>,
    ) -> Result<u32, TooManyRows> {
        let configuration = self.batch.row(config);
        if let Some(row) = self.by_indices[occurrence].row(configuration) {
            return Ok(row);
        }
        let Occurrence { segment, slots, .. } = &graph.occurrences[self.occurrences[occurrence]];
        // The limit bounds what is remembered here, which may be more than the rows: several
        // combinations of indices of different occurrences can lead to one row.
        self.met += 1;
        if self.met > MAX_ROWS {
            return Err(TooManyRows);
        }
        self.entries.clear();
        self.entries
            .extend(slots.iter().map(|&slot| self.batch.entry(config, slot)));
        let row = self.row_of_entries(*segment, rows);
        let configuration = self.batch.row(config);
        self.by_indices[occurrence].add(configuration, row);
        Ok(row)
    }

    /// Returns the row of `entries` at a segment, and adds it if it is a new one.
    fn row_of_entries(&mut self, segment: usize, rows: &mut Vec<Row>) -> u32 {
        // Occurrences of one segment have tables of their own, so only entries tell whether their
        // configurations are equal.
        let (known, known_rows) = &mut self.by_entries[segment];
        let (local, new) = known.insert(&self.entries);
        if new {
            known_rows.push(to_u32(rows.len()));
            rows.push(Row {
                segment,
                local: local as usize,
            });
        }
        known_rows[local as usize]
    }

    /// Returns the rows of the occurrences that see no slot.
    fn common(&mut self, graph: &SegmentedGraph, rows: &mut Vec<Row>) -> Vec<u32> {
        self.entries.clear();
        let occurrences = graph.occurrences.iter();
        occurrences
            .filter(|occurrence| occurrence.slots.is_empty())
            .map(|occurrence| self.row_of_entries(occurrence.segment, rows))
            .collect()
    }
}

/// Returns which of these occurrences sees each slot. Pruning keeps every configurable node, so there is
/// exactly one.
fn occurrence_of_slot(graph: &SegmentedGraph, occurrences: &[usize]) -> Vec<u32> {
    let mut occurrence_of_slot = vec![0; graph.slots()];
    for (number, &occurrence) in (0..).zip(occurrences) {
        for &slot in &graph.occurrences[occurrence].slots {
            occurrence_of_slot[slot] = number;
        }
    }
    occurrence_of_slot
}

impl RowFinder for LayoutRows {
    /// Looks up only the segments that see a slot which differs from the configuration before.
    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        // The rows of the last distinct configuration are the last ones of `row_of`, from which
        // they are copied.
        let before = found.distinct.first.last().copied();
        let Some(config) = found.add_config(graph, |config| self.batch.row(config))? else {
            return Ok(());
        };
        let FoundRows {
            rows,
            row_of,
            common,
            ..
        } = found;
        let start = row_of.len();
        if let Some(before) = before {
            row_of.extend_from_within(start - self.changed.len()..);
            self.note_changes(config, before);
        } else {
            *common = self.common(graph, rows);
            row_of.resize(self.changed.len(), 0);
            self.changed.fill(true);
        }
        for (occurrence, row) in row_of[start..].iter_mut().enumerate() {
            if take(&mut self.changed[occurrence]) {
                *row = self.row(graph, config, occurrence, rows)?;
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        Box::new(LocalLayouts(
            self.by_entries
                .into_iter()
                .map(|(known, _)| known)
                .collect(),
        ))
    }
}

impl LocalConfigurations for LocalLayouts {
    fn hash(&self, row: Row, hasher: &mut blake3::Hasher) {
        for entries in self.0[row.segment].get(row.local).chunks(HASHED) {
            // A call of the hasher takes longer than hashing the eight bytes of one entry.
            let mut bits = [[0; size_of::<u64>()]; HASHED];
            for (bits, entry) in bits.iter_mut().zip(entries) {
                *bits = entry.bits().to_le_bytes();
            }
            hasher.update(bits[..entries.len()].as_flattened());
        }
    }

    fn write(&self, row: Row, segment: &Segment, nodes: usize, values: &mut ConfigValues) {
        let Some(values) = values.int64() else { return };
        // Nodes that are not configurable and nodes of padding look the same to a model.
        let first = values.len();
        values.resize(first + nodes * LAYOUT_VALUES, NOT_CONFIGURABLE);
        for (&node, entry) in segment
            .configurable
            .iter()
            .zip(self.0[row.segment].get(row.local))
        {
            let places = &mut values[first + usize::from(node) * LAYOUT_VALUES..][..LAYOUT_VALUES];
            places
                .iter_mut()
                .zip(entry.values())
                .for_each(|(place, value)| *place = value.into());
        }
    }
}

/// The local configurations that one occurrence met, by the indices of their entries, and their rows.
enum OccurrenceRows {
    /// The row of every combination of indices; [`NO_ROW`] if it was not met.
    Table {
        /// Each slot, and what its index counts.
        strides: Vec<(usize, usize)>,
        rows: Vec<u32>,
    },
    /// Those that were met at these slots, where there are too many combinations.
    Set {
        slots: Vec<usize>,
        known: SliceSet<u16>,
        rows: Vec<u32>,
        /// Room for the indices of a configuration.
        indices: Vec<u16>,
    },
}

/// Maximum number of combinations in a table: 16 KiB.
const MAX_TABLE: usize = 4096;

/// Maximum number of combinations in a table, for each configuration of the batch. A larger table takes longer to fill than it
/// saves.
const MAX_TABLE_PER_CONFIG: usize = 8;

/// No batch has this many rows.
const NO_ROW: u32 = u32::MAX;

impl OccurrenceRows {
    /// Nothing was met yet of the configurations of a batch at these slots.
    fn new(slots: &[usize], batch: &LayoutBatch) -> Self {
        // A combination is a number with one digit per slot, whose base is the length of the slot's
        // table.
        let mut strides = Vec::with_capacity(slots.len());
        let mut combinations = 1_usize;
        for &slot in slots {
            strides.push((slot, combinations));
            combinations = combinations.saturating_mul(batch.table(slot).len());
        }
        if combinations > MAX_TABLE.min(MAX_TABLE_PER_CONFIG * batch.len()) {
            return Self::Set {
                slots: slots.to_vec(),
                known: SliceSet::new(slots.len(), batch.len()),
                rows: Vec::new(),
                indices: Vec::new(),
            };
        }
        Self::Table {
            strides,
            rows: vec![NO_ROW; combinations],
        }
    }

    /// Returns the row of the local configuration that this configuration has at the slots, if it was added.
    fn row(&mut self, configuration: &[u16]) -> Option<u32> {
        match self {
            Self::Table { strides, rows } => {
                Some(rows[place(strides, configuration)]).filter(|&row| row != NO_ROW)
            }
            Self::Set {
                slots,
                known,
                rows,
                indices,
            } => {
                gather(slots, configuration, indices);
                known.find(indices).map(|number| rows[number as usize])
            }
        }
    }

    /// Adds a local configuration that was not added yet.
    fn add(&mut self, configuration: &[u16], row: u32) {
        match self {
            Self::Table { strides, rows } => rows[place(strides, configuration)] = row,
            Self::Set {
                slots,
                known,
                rows,
                indices,
            } => {
                gather(slots, configuration, indices);
                // The set numbers slices in the order of insertion, which is that of `rows`.
                known.insert(indices);
                rows.push(row);
            }
        }
    }
}

fn place(strides: &[(usize, usize)], configuration: &[u16]) -> usize {
    strides
        .iter()
        .map(|&(slot, stride)| stride * usize::from(configuration[slot]))
        .sum()
}

fn gather(slots: &[usize], configuration: &[u16], indices: &mut Vec<u16>) {
    indices.clear();
    indices.extend(slots.iter().map(|&slot| configuration[slot]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Digest, Element, LayoutBatchBuilder, Limits};

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
            let mut met = OccurrenceRows::new(&[0, 1], &batch);
            assert_eq!(matches!(met, OccurrenceRows::Table { .. }), is_table);
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
        let mut met = OccurrenceRows::new(&[], &batch(1, 1));
        assert_eq!(met.row(&[]), None);
        met.add(&[], 7);
        assert_eq!(met.row(&[]), Some(7));
    }

    #[test]
    fn nodes_without_a_choice_and_padding_have_minus_two() {
        let mut entries = SliceSet::new(1, 1);
        entries.insert(&[LayoutEntry::from_numbers([1, 0, 0], String::new).unwrap()]);
        let segment = Segment {
            digest: Digest([0; 32]),
            opcodes: vec![0; 2],
            features: Vec::new(),
            sequence_lengths: None,
            edges: Vec::new(),
            configurable: vec![1],
        };
        let (row, mut values) = (
            Row {
                segment: 0,
                local: 0,
            },
            ConfigValues::new(Element::Int64),
        );
        LocalLayouts(vec![entries]).write(row, &segment, 3, &mut values);
        let mut chosen = [-1; LAYOUT_VALUES];
        chosen[0] = 0;
        let none = [-2; LAYOUT_VALUES];
        assert_eq!(values.int64(), Some(&mut [none, chosen, none].concat()));
    }
}
