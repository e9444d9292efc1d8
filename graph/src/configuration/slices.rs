use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::hash_table::{Entry, HashTable};

use super::count::to_u32;

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
    fn many_slices_stay_apart() {
        let mut set = SliceSet::new(1, 10_000);
        for number in 0..10_000_u32 {
            assert_eq!(set.insert(&[number]), (number, true));
        }
        assert!((0..10_000_u32).all(|number| set.insert(&[number]) == (number, false)));
    }

    #[test]
    fn there_is_one_empty_slice() {
        let mut set = SliceSet::<u16>::new(0, 1);
        assert_eq!([set.insert(&[]), set.insert(&[])], [(0, true), (0, false)]);
        assert!(set.get(0).is_empty());
    }
}
