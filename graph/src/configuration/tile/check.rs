//! Checks that tiles are ones that XLA accepts.

use super::TileBatch;
use crate::{ConfigurationError, pace};

/// Names of the lists of bounds.
const LISTS: [&str; 3] = ["kernel_bounds", "output_bounds", "input_bounds"];

/// Checks that all bounds are at least 1, and that the tile of each list has a number of elements of 64 bits.
pub(super) fn check(batch: &TileBatch) -> Result<(), ConfigurationError> {
    for (config, tile) in pace::in_steps(64, batch.iter()).enumerate() {
        for (list, bounds) in LISTS.into_iter().zip(tile.view().lists()) {
            check_bounds(config, list, bounds)?;
        }
    }
    Ok(())
}

fn check_bounds(
    config: usize,
    list: &'static str,
    bounds: &[i64],
) -> Result<(), ConfigurationError> {
    if let Some(&found) = bounds.iter().find(|bound| **bound < 1) {
        return Err(ConfigurationError::Bound {
            config,
            list,
            found,
        });
    }
    let elements = bounds
        .iter()
        .try_fold(1_i64, |product, bound| product.checked_mul(*bound));
    match elements {
        Some(_) => Ok(()),
        None => Err(ConfigurationError::TileTooLarge { config, list }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::tile::batch::tests::batch;

    fn checked(output_bounds: &[i64]) -> Result<(), ConfigurationError> {
        check(&batch(&[
            [vec![1], vec![2, 3], vec![]],
            [vec![], output_bounds.to_vec(), vec![4]],
        ]))
    }

    #[test]
    fn bounds_are_at_least_1() {
        assert_eq!(checked(&[1, 1, 8]), Ok(()));
        for found in [0, -1, i64::MIN] {
            let error = ConfigurationError::Bound {
                config: 1,
                list: "output_bounds",
                found,
            };
            assert_eq!(checked(&[1, found, 8]), Err(error));
        }
    }

    #[test]
    fn a_tile_has_a_number_of_elements_of_64_bits() {
        assert_eq!(checked(&[i64::MAX, 1]), Ok(()));
        let error = ConfigurationError::TileTooLarge {
            config: 1,
            list: "output_bounds",
        };
        assert_eq!(checked(&[i64::MAX, 2]), Err(error));
    }
}
