use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};
use hlorank_graph::{Configurations, LayoutBatch, TileBatch};

use super::as_u32;

/// Which configurations of a batch differ for a model: layouts by their entries, tiles by their features.
#[derive(Default)]
pub(super) struct Distinct {
    /// Where each distinct configuration stands first, ascending.
    pub(super) first: Vec<usize>,
    /// `[configs]` which of the distinct configurations each one is.
    pub(super) of_config: Vec<u32>,
    /// Numbers of distinct configurations.
    known: HashTable<u32>,
    hasher: RandomState,
}

impl Distinct {
    /// Of a whole batch.
    pub(super) fn of(configurations: &Configurations) -> Self {
        let mut distinct = Self::default();
        for _ in 0..configurations.len() {
            match configurations {
                Configurations::Layout(batch) => distinct.add_layout(batch),
                Configurations::Tile(batch) => distinct.add_tile(batch),
            };
        }
        distinct
    }

    /// So many configurations that are taken to differ.
    pub(super) fn all(count: usize) -> Self {
        Self { first: (0..count).collect(), of_config: (0..count).map(as_u32).collect(), ..Self::default() }
    }

    /// Looks at the next configuration of a batch; returns whether it is a new one.
    pub(super) fn add_layout(&mut self, batch: &LayoutBatch) -> bool {
        self.add(|config| batch.row(config))
    }

    /// Looks at the next configuration of a batch; returns whether it is a new one.
    pub(super) fn add_tile(&mut self, batch: &TileBatch) -> bool {
        self.add(|config| batch.get(config).features().map(f32::to_bits))
    }

    /// `item` gives what a configuration holds.
    fn add<T: Hash + Eq>(&mut self, item: impl Fn(usize) -> T) -> bool {
        let Self { first, of_config, known, hasher } = self;
        let next = item(of_config.len());
        let same = |&number: &u32| item(first[number as usize]) == next;
        let hash = |&number: &u32| hasher.hash_one(item(first[number as usize]));
        match known.entry(hasher.hash_one(&next), same, hash) {
            Entry::Occupied(number) => {
                of_config.push(*number.get());
                false
            }
            Entry::Vacant(vacant) => {
                let number = as_u32(first.len());
                vacant.insert(number);
                first.push(of_config.len());
                of_config.push(number);
                true
            }
        }
    }

    /// The value of every configuration from those of the distinct ones.
    pub(super) fn fan_out(&self, values: &[f32]) -> Vec<f32> {
        self.of_config.iter().map(|&distinct| values[distinct as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_are_found_in_order_of_appearance() {
        let items: Vec<char> = "abacbb".chars().collect();
        let mut distinct = Distinct::default();
        let new: Vec<bool> = items.iter().map(|_| distinct.add(|place| items[place])).collect();
        assert_eq!(new, [true, true, false, true, false, false]);
        assert_eq!(distinct.first, [0, 1, 3]);
        assert_eq!(distinct.of_config, [0, 1, 0, 2, 1, 1]);
        assert_eq!(distinct.fan_out(&[1.0, 2.0, 3.0]), [1.0, 2.0, 1.0, 3.0, 2.0, 2.0]);
    }

    #[test]
    fn many_items_stay_apart() {
        let mut distinct = Distinct::default();
        assert!((0..10_000).all(|config| distinct.add(|place| place % 7_000) == (config < 7_000)));
    }
}
