//! Tables of what differs, numbered in order of appearance. They compare by content, so equal hashes merge nothing.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

use super::checks::to_u32;
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
    pub fn all(count: usize) -> Self {
        Self {
            first: (0..count).collect(),
            of_config: (0..count).map(to_u32).collect(),
            ..Self::default()
        }
    }

    /// Finds the distinct ones of `count` configurations, whose content `item` returns by number.
    pub(super) fn new<T: Hash + Eq>(count: usize, item: impl Fn(usize) -> T) -> Self {
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
    pub fn fan_out(&self, values: &[f32]) -> Vec<f32> {
        self.of_config
            .iter()
            .map(|&distinct| values[distinct as usize])
            .collect()
    }
}

/// Distinct slices of one width, numbered in order of appearance and kept in one array.
pub(super) struct SliceSet<T> {
    width: usize,
    flat: Vec<T>,
    numbers: HashTable<u32>,
    hasher: RandomState,
}

/// Maximum number of slices that a new set has room for. Most sets of a small call stay below it, and growing takes longer than
/// inserting.
const FIRST: usize = 28;

impl<T: Copy + Eq + Hash> SliceSet<T> {
    /// An empty set that will have at most `most` slices.
    pub(super) fn new(width: usize, most: usize) -> Self {
        let first = FIRST.min(most);
        Self {
            width,
            flat: Vec::with_capacity(first * width),
            numbers: HashTable::with_capacity(first),
            hasher: RandomState::default(),
        }
    }

    /// Returns the number of a slice, and whether it is a new one.
    pub(super) fn insert(&mut self, slice: &[T]) -> (u32, bool) {
        let Self {
            width,
            flat,
            numbers,
            hasher,
        } = self;
        // The slices stay in one array without a list each; the table has their numbers and
        // compares what these stand for.
        let known = |number: u32| &flat[number as usize * *width..][..*width];
        let count = numbers.len();
        let same = |&number: &u32| known(number) == slice;
        let hash = |&number: &u32| hasher.hash_one(known(number));
        match numbers.entry(hasher.hash_one(slice), same, hash) {
            Entry::Occupied(number) => (*number.get(), false),
            Entry::Vacant(vacant) => {
                let number = to_u32(count);
                vacant.insert(number);
                flat.extend_from_slice(slice);
                (number, true)
            }
        }
    }

    /// Returns the number of a slice if it was inserted.
    pub(super) fn find(&self, slice: &[T]) -> Option<u32> {
        let hash = self.hasher.hash_one(slice);
        self.numbers
            .find(hash, |&number| self.get(number as usize) == slice)
            .copied()
    }

    /// Returns all slices, one after the other.
    pub(super) fn into_flat(self) -> Vec<T> {
        self.flat
    }

    /// Returns the slice of a number.
    pub(super) fn get(&self, number: usize) -> &[T] {
        &self.flat[number * self.width..][..self.width]
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
    fn many_items_and_slices_stay_apart() {
        let mut distinct = Distinct::default();
        assert!((0..10_000).all(|config| distinct.add(|place| place % 7_000) == (config < 7_000)));
        let mut set = SliceSet::new(1, 10_000);
        for is_new in [true, false] {
            assert!((0..10_000_u32).all(|number| set.insert(&[number]) == (number, is_new)));
        }
    }

    #[test]
    fn equal_slices_have_one_number() {
        let mut set = SliceSet::new(2, 3);
        for (slice, expected) in [
            ([1, 2], (0, true)),
            ([2, 1], (1, true)),
            ([1, 2], (0, false)),
            ([1, 1], (2, true)),
        ] {
            assert_eq!(set.insert(&slice), expected);
            assert_eq!(set.get(expected.0 as usize), slice);
        }
    }

    #[test]
    fn there_is_one_empty_slice() {
        let mut set = SliceSet::<u16>::new(0, 1);
        assert_eq!([set.insert(&[]), set.insert(&[])], [(0, true), (0, false)]);
        assert!(set.get(0).is_empty());
    }
}
