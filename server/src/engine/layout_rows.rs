use hlorank_graph::{LayoutBatch, LayoutEntry, Occurrence, SegmentedGraph};

use super::{
    as_u32,
    plan::{MAX_ROWS, Row, TooManyRows},
    slices::SliceSet,
};

/// Finds the rows of layouts: by index where an occurrence meets a local configuration again, which is what most do,
/// and by content across occurrences of one segment.
pub(super) struct LayoutRows {
    occurrence_of_slot: Vec<usize>,
    /// Per occurrence, the local configurations that were met, as indices, and their rows.
    by_indices: Vec<(SliceSet<u16>, Vec<u32>)>,
    /// Per segment, the local configurations that were met, and their rows.
    by_entries: Vec<(SliceSet<LayoutEntry>, Vec<u32>)>,
    rows: Vec<Row>,
    /// Local configurations in `by_indices`.
    met: usize,
    indices: Vec<u16>,
    entries: Vec<LayoutEntry>,
    /// Per occurrence, whether its local configuration differs from that of the configuration before.
    changed: Vec<bool>,
}

impl LayoutRows {
    pub(super) fn new(graph: &SegmentedGraph) -> Self {
        let mut occurrence_of_slot = vec![0; graph.slots()];
        for (number, occurrence) in graph.occurrences.iter().enumerate() {
            occurrence.slots.iter().for_each(|&slot| occurrence_of_slot[slot] = number);
        }
        let occurrences = graph.occurrences.iter().map(|occurrence| occurrence.slots.len());
        let segments = graph.segments.iter().map(|segment| segment.configurable.len());
        Self {
            occurrence_of_slot,
            by_indices: occurrences.map(|slots| (SliceSet::new(slots), Vec::new())).collect(),
            by_entries: segments.map(|slots| (SliceSet::new(slots), Vec::new())).collect(),
            rows: Vec::new(),
            met: 0,
            indices: Vec::new(),
            entries: Vec::new(),
            changed: vec![false; graph.occurrences.len()],
        }
    }

    /// Appends the rows of a configuration of a batch to `row_of`, whose last rows are those of the configuration
    /// `before`: only segments that see a changed slot are looked up.
    pub(super) fn append(
        &mut self,
        graph: &SegmentedGraph,
        batch: &LayoutBatch,
        config: usize,
        before: Option<usize>,
        row_of: &mut Vec<u32>,
    ) -> Result<(), TooManyRows> {
        let start = row_of.len();
        let configuration = batch.row(config);
        match before.map(|before| batch.row(before)) {
            None => {
                row_of.resize(self.changed.len(), 0);
                self.changed.fill(true);
            }
            Some(before) => {
                row_of.extend_from_within(start - self.changed.len()..);
                let slots = self.occurrence_of_slot.iter().zip(configuration.iter().zip(before));
                for (&occurrence, (index, before)) in slots {
                    self.changed[occurrence] |= index != before;
                }
            }
        }
        for (occurrence, row) in row_of[start..].iter_mut().enumerate() {
            if std::mem::take(&mut self.changed[occurrence]) {
                *row = self.row(graph, batch, occurrence, configuration)?;
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        graph: &SegmentedGraph,
        batch: &LayoutBatch,
        occurrence: usize,
        configuration: &[u16],
    ) -> Result<u32, TooManyRows> {
        let Occurrence { segment, slots, .. } = &graph.occurrences[occurrence];
        self.indices.clear();
        self.indices.extend(slots.iter().map(|&slot| configuration[slot]));
        let (known, rows) = &mut self.by_indices[occurrence];
        let (number, new) = known.insert(&self.indices);
        if !new {
            return Ok(rows[number as usize]);
        }
        self.met += 1;
        if self.met > MAX_ROWS {
            return Err(TooManyRows);
        }
        let entry = |(&slot, &index): (&usize, &u16)| batch.table(slot)[usize::from(index)];
        self.entries.clear();
        self.entries.extend(slots.iter().zip(&self.indices).map(entry));
        let row = self.row_of_entries(*segment);
        self.by_indices[occurrence].1.push(row);
        Ok(row)
    }

    fn row_of_entries(&mut self, segment: usize) -> u32 {
        let (known, rows) = &mut self.by_entries[segment];
        let (local, new) = known.insert(&self.entries);
        if new {
            rows.push(as_u32(self.rows.len()));
            self.rows.push(Row { segment, local: local as usize });
        }
        rows[local as usize]
    }

    /// Every row, and the local configurations of every segment.
    pub(super) fn finish(self) -> (Vec<Row>, Vec<SliceSet<LayoutEntry>>) {
        (self.rows, self.by_entries.into_iter().map(|(known, _)| known).collect())
    }
}
