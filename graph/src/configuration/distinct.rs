use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

use super::count::to_u32;
use crate::pace;

/// Which configurations of a batch differ from each other for a model.
#[derive(Default)]
pub struct Distinct {
    /// Position of the first occurrence of each distinct configuration, ascending.
    pub first: Vec<usize>,
    /// `[configs]` which of the distinct configurations each one is.
    pub of_config: Vec<u32>,
    /// Numbers of distinct configurations.
    known: HashTable<u32>,
    hasher: RandomState,
}

/// Number of configurations between two pauses.
const CONFIGS: usize = 64;

impl Distinct {
    /// Has looked at none of `count` configurations yet.
    pub(super) fn with_capacity(count: usize) -> Self {
        Self {
            first: Vec::with_capacity(count),
            of_config: Vec::with_capacity(count),
            known: HashTable::with_capacity(count),
            ..Self::default()
        }
    }

    /// Treats all of `count` configurations as different.
    #[must_use]
    pub fn all(count: usize) -> Self {
        Self {
            first: (0..count).collect(),
            of_config: (0..count).map(to_u32).collect(),
            ..Self::default()
        }
    }

    /// Finds the distinct ones of `count` configurations, whose content `item` returns by number.
    pub(super) fn of<T: Hash + Eq>(count: usize, item: impl Fn(usize) -> T) -> Self {
        let mut distinct = Self::with_capacity(count);
        for _ in pace::in_steps(CONFIGS, 0..count) {
            distinct.add(&item);
        }
        distinct
    }

    /// Looks at the next configuration, whose content `item` returns by number. Returns whether it is a new one.
    pub(super) fn add<T: Hash + Eq>(&mut self, item: impl Fn(usize) -> T) -> bool {
        let Self {
            first,
            of_config,
            known,
            hasher,
        } = self;
        // The table holds numbers alone, and asks the batch for what they stand for: a copy of
        // every configuration would double the memory of a batch. The comparison is by content, so
        // equal hashes merge nothing that differs.
        let next = item(of_config.len());
        let same = |&number: &u32| item(first[number as usize]) == next;
        let hash = |&number: &u32| hasher.hash_one(item(first[number as usize]));
        match known.entry(hasher.hash_one(&next), same, hash) {
            Entry::Occupied(number) => {
                of_config.push(*number.get());
                false
            }
            Entry::Vacant(vacant) => {
                let number = to_u32(first.len());
                vacant.insert(number);
                first.push(of_config.len());
                of_config.push(number);
                true
            }
        }
    }

    /// Returns the value of every configuration, given those of the distinct ones.
    #[must_use]
    pub fn fan_out(&self, values: &[f32]) -> Vec<f32> {
        self.of_config
            .iter()
            .map(|&distinct| values[distinct as usize])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_are_found_in_order_of_appearance() {
        let items: Vec<char> = "abacbb".chars().collect();
        let mut distinct = Distinct::default();
        let new: Vec<bool> = items
            .iter()
            .map(|_| distinct.add(|place| items[place]))
            .collect();
        assert_eq!(new, [true, true, false, true, false, false]);
        assert_eq!(distinct.first, [0, 1, 3]);
        assert_eq!(distinct.of_config, [0, 1, 0, 2, 1, 1]);
        assert_eq!(
            distinct.fan_out(&[1.0, 2.0, 3.0]),
            [1.0, 2.0, 1.0, 3.0, 2.0, 2.0]
        );
    }

    #[test]
    fn many_items_stay_apart() {
        let mut distinct = Distinct::default();
        assert!((0..10_000).all(|config| distinct.add(|place| place % 7_000) == (config < 7_000)));
    }
}
