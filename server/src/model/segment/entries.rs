use foldhash::{HashMap, HashMapExt};
use hlorank_graph::{ConfigInput, ConfigValues};

/// The distinct entries of layouts, and the number of the entry of each node.
pub(super) struct Entries<'a> {
    /// `[entries, width]`.
    pub(super) distinct: Vec<i64>,
    pub(super) width: usize,
    /// `[rows, nodes]`.
    pub(super) numbers: Vec<i64>,
    pub(super) shape: &'a [usize],
}

/// The number of entries is a multiple of this, so that what is computed of an entry does not depend on their number.
const MULTIPLE: usize = 4;

impl<'a> Entries<'a> {
    /// Returns the entries of layouts `[rows, nodes, width]`; `None` of other configurations.
    pub(super) fn of(config: &'a ConfigInput) -> Option<Self> {
        let ConfigValues::Int64(values) = &config.values else {
            return None;
        };
        let [shape @ .., width] = config.shape.as_slice() else {
            return None;
        };
        let mut known: HashMap<&[i64], i64> = HashMap::new();
        let mut found = Self {
            distinct: Vec::new(),
            width: *width,
            numbers: Vec::new(),
            shape,
        };
        // An entry gets its number at its first occurrence, which is its place in `distinct`.
        for entry in values.chunks_exact(*width) {
            let next = i64::try_from(known.len()).ok()?;
            let number = *known.entry(entry).or_insert_with(|| {
                found.distinct.extend_from_slice(entry);
                next
            });
            found.numbers.push(number);
        }
        found.pad()?;
        Some(found)
    }

    /// Repeats the last entry until their number is a multiple; `None` if there is no entry.
    fn pad(&mut self) -> Option<()> {
        let last = self.distinct.len().checked_sub(self.width)?;
        while !self.len().is_multiple_of(MULTIPLE) {
            self.distinct.extend_from_within(last..last + self.width);
        }
        Some(())
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.distinct.len() / self.width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_are_one_and_the_last_is_repeated() {
        let values = vec![1, 2, -2, -2, 1, 2, -2, -2, 3, 4, 1, 2];
        let config = ConfigInput {
            shape: vec![2, 3, 2],
            values: ConfigValues::Int64(values),
        };
        let found = Entries::of(&config).unwrap();
        assert_eq!(found.distinct, [1, 2, -2, -2, 3, 4, 3, 4]);
        assert_eq!(
            (found.numbers.as_slice(), found.shape),
            ([0, 1, 0, 1, 2, 0].as_slice(), [2, 3].as_slice())
        );
    }

    #[test]
    fn tiles_have_no_entries() {
        let config = ConfigInput {
            shape: vec![1, 2],
            values: ConfigValues::Float32(vec![1.0, 2.0]),
        };
        assert!(Entries::of(&config).is_none());
    }
}
