use std::hash::Hash;

use foldhash::{HashMap, HashMapExt};
use hlorank_graph::Configurations;

use super::as_u32;

/// Which of some items differ.
pub(super) struct Distinct {
    /// Where each distinct item stands first, ascending.
    pub(super) first: Vec<usize>,
    /// `[items]` which of the distinct items each one is.
    pub(super) of_item: Vec<u32>,
}

impl Distinct {
    /// Configurations that differ for a model: layouts by their entries, tiles by their features.
    pub(super) fn of(configurations: &Configurations) -> Self {
        match configurations {
            Configurations::Layout(batch) => Self::items((0..batch.len()).map(|config| batch.row(config))),
            Configurations::Tile(batch) => {
                Self::items(batch.iter().map(|tile| tile.features().map(f32::to_bits)))
            }
        }
    }

    /// So many items that are taken to differ.
    pub(super) fn all(count: usize) -> Self {
        Self { first: (0..count).collect(), of_item: (0..count).map(as_u32).collect() }
    }

    fn items<T: Eq + Hash>(items: impl Iterator<Item = T>) -> Self {
        let (mut seen, mut first) = (HashMap::new(), Vec::new());
        let of_item = items.enumerate().map(|(place, item)| {
            *seen.entry(item).or_insert_with(|| {
                first.push(place);
                as_u32(first.len() - 1)
            })
        });
        let of_item = of_item.collect();
        Self { first, of_item }
    }

    /// The value of every item from those of the distinct ones.
    pub(super) fn fan_out(&self, values: &[f32]) -> Vec<f32> {
        self.of_item.iter().map(|&distinct| values[distinct as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_are_found_in_order_of_appearance() {
        let distinct = Distinct::items("abacbb".chars());
        assert_eq!(distinct.first, [0, 1, 3]);
        assert_eq!(distinct.of_item, [0, 1, 0, 2, 1, 1]);
        assert_eq!(distinct.fan_out(&[1.0, 2.0, 3.0]), [1.0, 2.0, 1.0, 3.0, 2.0, 2.0]);
    }
}
