//! The combinations of what the configurations of a batch have at each segment or node.

use std::collections::HashSet;

use hlorank_adaptation::split_mix::{below, mix};
use hlorank_graph::{ConfigurationError, LayoutBatch, SegmentedGraph, pace};

/// What is combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CombinedPart {
    Segments,
    Nodes,
}

/// Combinations of what some configurations have at each place.
pub(super) struct Space {
    /// One of the configurations. Its tables hold every entry that is combined.
    batch: LayoutBatch,
    /// Those where the configurations differ.
    places: Vec<SlotGroup>,
}

/// A segment or a node, and what it may have.
struct SlotGroup {
    slots: Vec<usize>,
    /// Distinct indices into the tables of the slots. Those of the first configurations come first.
    options: Vec<Vec<u16>>,
}

/// Another option at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    place: usize,
    option: usize,
}

/// Number of configurations, those with the lowest predicted times, whose options are combined.
const COMBINED: usize = 4_096;

impl CombinedPart {
    /// Maximum number of single changes that are scored at once. Changes of segments do not need the encoder.
    fn changes(self) -> usize {
        match self {
            Self::Segments => 4_096,
            Self::Nodes => 512,
        }
    }

    /// The slots of each place of a graph.
    fn places(self, graph: &SegmentedGraph) -> Vec<Vec<usize>> {
        match self {
            Self::Segments => {
                let segments = graph.occurrences.iter();
                segments.map(|each| each.slots.clone()).collect()
            }
            Self::Nodes => (0..graph.slots()).map(|slot| vec![slot]).collect(),
        }
    }
}

impl Space {
    /// Combines what configurations have. `ranking` has their numbers, best first: if a place has more options than can be
    /// tried, those of the first ones are kept.
    pub(super) fn new(
        graph: &SegmentedGraph,
        batch: &LayoutBatch,
        ranking: &[usize],
        part: CombinedPart,
    ) -> Self {
        let rows = &ranking[..ranking.len().min(COMBINED)];
        // A place where all configurations are equal has nothing to change.
        let mut slots = part.places(graph);
        slots.retain(|slots| {
            rows.iter()
                .any(|&row| at(batch.row(row), slots).ne(at(batch.row(rows[0]), slots)))
        });
        // A row has one of the options already, so that a place has one change fewer than options.
        let most = (part.changes() / slots.len().max(1)).max(1) + 1;
        let places = pace::in_steps(1, slots)
            .map(|slots| SlotGroup::new(batch, rows, slots, most))
            .collect();
        Self {
            batch: batch.select(&rows[..rows.len().min(1)]),
            places,
        }
    }

    /// A batch of rows of this space.
    pub(super) fn batch(&self, rows: Vec<u16>) -> Result<LayoutBatch, ConfigurationError> {
        self.batch.with_rows(rows)
    }

    /// Bytes of the tables, of which every batch of rows has a copy.
    pub(super) fn table_bytes(&self) -> usize {
        let slots = 0..self.batch.slots();
        slots.map(|slot| size_of_val(self.batch.table(slot))).sum()
    }

    /// Maximum number of rows that one step of a search makes.
    pub(super) fn changes(&self) -> usize {
        self.places.iter().map(|place| place.options.len()).sum()
    }

    /// Every change of a row at one place, and the rows that they make.
    pub(super) fn single_changes(&self, row: &[u16]) -> (Vec<Change>, Vec<u16>) {
        let mut changes = Vec::new();
        let mut rows = Vec::new();
        for (number, place) in self.places.iter().enumerate() {
            for option in 0..place.options.len() {
                if at(row, &place.slots).ne(place.options[option].iter().copied()) {
                    changes.push(Change {
                        place: number,
                        option,
                    });
                    self.changed(row, &changes[changes.len() - 1..], &mut rows);
                }
            }
        }
        (changes, rows)
    }

    /// The best change of each place, if it is an improvement by `gain`, best first.
    pub(super) fn best_of_places(
        &self,
        changes: &[Change],
        gain: impl Fn(usize) -> f32,
    ) -> Vec<Change> {
        // Without an improvement, the gain is 0, and there is no change.
        let mut best = vec![(0.0_f32, None); self.places.len()];
        for (number, change) in changes.iter().enumerate() {
            let gain = gain(number);
            let best = &mut best[change.place];
            if gain > best.0 {
                *best = (gain, Some(*change));
            }
        }
        best.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        best.into_iter().filter_map(|(_, change)| change).collect()
    }

    /// The rows that the first two, three, four and so on of some changes of different places make of a row.
    pub(super) fn changed_together(&self, row: &[u16], changes: &[Change]) -> Vec<u16> {
        let mut rows = Vec::new();
        // One change alone was scored before.
        for count in 2..=changes.len() {
            self.changed(row, &changes[..count], &mut rows);
        }
        rows
    }

    /// Rows with an option drawn at each place.
    pub(super) fn random(&self, row: &[u16], count: usize, seed: u64) -> Vec<u16> {
        let mut rows = Vec::new();
        let mut state = seed;
        for _ in 0..count {
            let draw = |(number, place): (usize, &SlotGroup)| {
                state = mix(state);
                Change {
                    place: number,
                    option: below(state, place.options.len()),
                }
            };
            let drawn: Vec<Change> = self.places.iter().enumerate().map(draw).collect();
            self.changed(row, &drawn, &mut rows);
        }
        rows
    }

    fn changed(&self, row: &[u16], changes: &[Change], rows: &mut Vec<u16>) {
        let start = rows.len();
        rows.extend_from_slice(row);
        for &Change { place, option } in changes {
            let SlotGroup { slots, options } = &self.places[place];
            for (&slot, &index) in slots.iter().zip(&options[option]) {
                rows[start + slot] = index;
            }
        }
    }
}

impl SlotGroup {
    fn new(batch: &LayoutBatch, rows: &[usize], slots: Vec<usize>, most: usize) -> Self {
        let mut known = HashSet::new();
        let mut options = Vec::new();
        for &row in rows {
            let option: Vec<u16> = at(batch.row(row), &slots).collect();
            if known.insert(option.clone()) {
                options.push(option);
            }
            if options.len() == most {
                break;
            }
        }
        Self { slots, options }
    }
}

/// What a row has at some slots.
fn at(row: &[u16], slots: &[usize]) -> impl Iterator<Item = u16> {
    slots.iter().map(|&slot| row[slot])
}

#[cfg(test)]
mod tests {
    use hlorank_graph::{LayoutEntry, Limits};

    use super::*;

    /// Returns a space of three nodes whose first two are one segment, of four layouts.
    fn space(combined: CombinedPart) -> Space {
        let entry = |number| LayoutEntry::from_numbers([number, 0, 0], String::new).unwrap();
        let tables = vec![
            vec![entry(1), entry(2)],
            vec![entry(3), entry(4)],
            vec![entry(5), entry(6)],
        ];
        let rows = vec![0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0];
        let batch = LayoutBatch::new(4, tables, rows, &Limits::default()).unwrap();
        let places = match combined {
            CombinedPart::Segments => vec![vec![0, 1], vec![2]],
            CombinedPart::Nodes => vec![vec![0], vec![1], vec![2]],
        };
        let places = places
            .into_iter()
            .map(|slots| SlotGroup::new(&batch, &[0, 1, 2, 3], slots, 10))
            .collect();
        Space { batch, places }
    }

    #[test]
    fn segments_keep_together_what_one_configuration_has() {
        let space = space(CombinedPart::Segments);
        let (changes, rows) = space.single_changes(&[0, 0, 0]);
        assert_eq!(rows, [1, 1, 0, 0, 0, 1]);
        assert_eq!(space.changed_together(&[0, 0, 0], &changes), [1, 1, 1]);
    }

    #[test]
    fn nodes_change_by_themselves() {
        let (_, rows) = space(CombinedPart::Nodes).single_changes(&[0, 1, 0]);
        assert_eq!(rows, [1, 1, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn the_best_improvement_of_each_place_is_taken() {
        let space = space(CombinedPart::Nodes);
        let (changes, _) = space.single_changes(&[0, 0, 0]);
        let best = space.best_of_places(&changes, |number| [0.5, -1.0, 2.0][number]);
        assert_eq!(best, [changes[2], changes[0]]);
        assert!(space.best_of_places(&changes, |_| 0.0).is_empty());
    }

    #[test]
    fn random_combinations_depend_on_the_seed() {
        let space = space(CombinedPart::Segments);
        let drawn = |seed| space.random(&[0, 0, 0], 8, seed);
        assert_eq!(drawn(3), drawn(3));
        assert_ne!(drawn(3), drawn(4));
        assert!(
            drawn(3).chunks(3).all(|row| row[0] == row[1]),
            "{:?}",
            drawn(3)
        );
    }
}
