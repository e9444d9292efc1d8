use serde::{Deserialize, Serialize};

use crate::{
    model::manifest_error::{ManifestError, check_field},
    split_mix::mix,
};

/// Orders of the configurations of a batch, whose scores are averaged: test-time augmentation, as `TGraph` does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutations {
    /// Number of orders; 1 to 64.
    pub count: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// The field as a manifest holds it.
#[derive(Deserialize, Serialize)]
pub(super) struct WrittenPermutations {
    count: u32,
    seed: u64,
}

/// Maximum number of orders.
const MAX_COUNT: u32 = 64;

impl WrittenPermutations {
    pub(super) fn checked(self, batch_dependent: bool) -> Result<Permutations, ManifestError> {
        let Self { count, seed } = self;
        let written = serde_json::json!(self);
        check_field(
            batch_dependent,
            "permutations",
            &written,
            "none without `batch_dependent`",
        )?;
        let expected = format!("a count of 1 to {MAX_COUNT}");
        check_field(
            (1..=MAX_COUNT).contains(&count),
            "permutations",
            &written,
            &expected,
        )?;
        Ok(Permutations { count, seed })
    }
}

impl Permutations {
    /// Returns the configurations `0..configs` in one of the orders: by the hash of the seed, the order's number and the
    /// configuration, ties by configuration.
    #[must_use]
    pub fn order(self, number: u32, configs: usize) -> Vec<usize> {
        // The keys are hashes, so that an exporter computes the same orders without the random
        // numbers of a library.
        let of_order = mix(mix(self.seed) ^ u64::from(number));
        let mut order: Vec<usize> = (0..configs).collect();
        order.sort_by_cached_key(|&config| mix(of_order ^ config as u64));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_document() {
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        let permutations = Permutations {
            count: 2,
            seed: 101,
        };
        let orders = [0, 1].map(|number| permutations.order(number, 8));
        assert_eq!(orders, [[5, 6, 0, 4, 3, 2, 1, 7], [7, 2, 1, 4, 3, 5, 0, 6]]);
    }

    #[test]
    fn an_order_has_every_configuration_once() {
        let mut order = Permutations { count: 1, seed: 7 }.order(0, 1000);
        assert!(!order.is_sorted());
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1000));
    }
}
