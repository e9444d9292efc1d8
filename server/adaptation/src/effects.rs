use std::collections::{BTreeMap, BTreeSet};

use hlorank_graph::{LayoutBatch, LayoutEntry};

use super::Point;

/// The mean of ln(seconds) of layouts, which is a sum over tensors.
#[derive(Debug)]
pub(super) struct Effects {
    pub(super) constant: f64,
    /// What a unit of score adds.
    pub(super) slope: f64,
    /// What each measured order of dimensions adds, per tensor. An order that was not measured adds nothing.
    pub(super) tensors: Vec<BTreeMap<u32, f64>>,
}

/// Number of tensors of a slot.
const TENSORS: usize = 3;

impl Effects {
    /// What the orders of a slot's tensors add.
    fn of_slot(&self, slot: usize, orders: impl Iterator<Item = u32>) -> f64 {
        let tensors = &self.tensors[slot * TENSORS..][..TENSORS];
        let found = tensors.iter().zip(orders);
        let found = found.map(|(effects, order)| effects.get(&order).copied());
        found.map(Option::unwrap_or_default).sum()
    }

    pub(super) fn of_point(&self, point: &Point) -> f64 {
        let slots = point.orders.chunks_exact(TENSORS).enumerate();
        let slots = slots.map(|(slot, orders)| self.of_slot(slot, orders.iter().copied()));
        self.constant + self.slope * point.score + slots.sum::<f64>()
    }
}

/// The means of the layouts of one batch.
#[derive(Debug)]
pub struct LayoutMeans {
    constant: f64,
    slope: f64,
    /// `[slots, entries]` what each entry of a slot's table adds.
    tables: Vec<Vec<f64>>,
    failed: LayoutRows,
}

/// Some configurations as rows of indices into the tables of a batch.
#[derive(Debug)]
pub struct LayoutRows(BTreeSet<Vec<u16>>);

impl LayoutMeans {
    pub(super) fn new(effects: &Effects, failed: &[Point], batch: &LayoutBatch) -> Self {
        // An entry is looked up once for the batch, so that a configuration takes one addition a
        // slot.
        let table = |slot| {
            let entries = batch.table(slot).iter();
            entries
                .map(|entry| effects.of_slot(slot, orders(*entry)))
                .collect()
        };
        Self {
            constant: effects.constant,
            slope: effects.slope,
            tables: (0..batch.slots()).map(table).collect(),
            failed: LayoutRows::new(failed, batch),
        }
    }

    /// The mean of a configuration of the batch, given its indices; infinity if it failed.
    pub fn mean(&self, score: f64, row: &[u16]) -> f64 {
        if self.failed.contain(row) {
            return f64::INFINITY;
        }
        let slots = self.tables.iter().zip(row);
        let slots = slots.map(|(table, &index)| table[usize::from(index)]);
        self.constant + self.slope * score + slots.sum::<f64>()
    }
}

impl LayoutRows {
    /// The points whose entries are in the tables of a batch.
    pub fn new(points: &[Point], batch: &LayoutBatch) -> Self {
        let rows = points.iter().filter_map(|point| row(point, batch));
        Self(rows.collect())
    }

    /// Whether a configuration is one of them.
    pub fn contain(&self, row: &[u16]) -> bool {
        self.0.contains(row)
    }
}

/// The indices of a point in a batch, if its entries are in the tables.
fn row(point: &Point, batch: &LayoutBatch) -> Option<Vec<u16>> {
    // An entry that no table has belongs to no configuration of the batch.
    let slots = point.orders.chunks_exact(TENSORS).enumerate();
    let index = |(slot, wanted): (usize, &[u32])| {
        let found = batch
            .table(slot)
            .iter()
            .position(|entry| orders(*entry).eq(wanted.iter().copied()));
        found.and_then(|index| u16::try_from(index).ok())
    };
    slots.map(index).collect()
}

/// The order of each tensor of an entry, as in [`Point::orders`].
fn orders(entry: LayoutEntry) -> impl Iterator<Item = u32> {
    entry.numbers().into_iter()
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Limits;

    use super::*;

    #[test]
    fn a_batch_has_the_means_of_its_points() {
        let entry = |number| LayoutEntry::from_numbers([number, 7, 0], String::new).unwrap();
        let tables = vec![vec![entry(1), entry(2)], vec![entry(3)]];
        let batch = LayoutBatch::new(2, tables, vec![0, 0, 1, 0], &Limits::default()).unwrap();
        let effects = Effects {
            constant: 1.0,
            slope: 0.5,
            tensors: [
                (1, 2.0),
                (7, 4.0),
                (9, 8.0),
                (3, 16.0),
                (9, 32.0),
                (0, 64.0),
            ]
            .map(|effect| BTreeMap::from([effect]))
            .to_vec(),
        };
        let point = |first| Point::of_orders(3.0, &[first, 7, 0, 3, 7, 0]);
        let means = LayoutMeans::new(&effects, &[], &batch);
        for (config, first) in [(0, 1), (1, 2)] {
            let mean = means.mean(3.0, batch.row(config));
            assert_eq!(mean.to_bits(), effects.of_point(&point(first)).to_bits());
        }
        assert_eq!(
            effects.of_point(&point(2)),
            1.0 + 1.5 + 4.0 + 16.0 + 64.0,
            "2 was not measured"
        );
        let means = LayoutMeans::new(&effects, &[point(2), point(5)], &batch);
        assert_eq!(means.mean(3.0, batch.row(1)), f64::INFINITY);
        assert!(means.mean(3.0, batch.row(0)).is_finite());
    }
}
