use std::ops::Range;

use crate::{FEATURES, GraphError, pace};

/// Maximum absolute value of a feature, 2^63: features are numbers of 64 bits of an HLO module.
const MAX_FEATURE: f32 = 9_223_372_036_854_775_808.0;

/// Maximum number of elements of a tensor, 2^63: XLA counts them, and their bytes, in 64 bits.
const MAX_ELEMENTS: f64 = 9_223_372_036_854_775_808.0;

/// Columns of the first six dimensions of a node.
const DIMENSIONS: Range<usize> = 21..27;

/// Number of nodes between two pauses.
const NODES: usize = 256;

/// Checks that features are values that a valid HLO module can have. A model may overflow on larger ones.
pub(super) fn check_range(features: &[f32]) -> Result<(), GraphError> {
    for (node, row) in pace::in_steps(NODES, features.chunks_exact(FEATURES)).enumerate() {
        if let Some(column) = row.iter().position(|feature| feature.abs() > MAX_FEATURE) {
            return Err(GraphError::FeatureTooLarge { node, column });
        }
        if elements(row) > MAX_ELEMENTS {
            return Err(GraphError::TensorTooLarge { node });
        }
    }
    Ok(())
}

/// Number of elements of a node's output. Unused and unknown dimensions are 0 or negative, and do not count.
fn elements(row: &[f32]) -> f64 {
    row[DIMENSIONS].iter().map(|&dimension| f64::from(dimension).max(1.0)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(values: &[(usize, f32)]) -> Vec<f32> {
        let mut features = vec![0.0; 2 * FEATURES];
        for &(column, value) in values {
            features[FEATURES + column] = value;
        }
        features
    }

    #[test]
    fn a_feature_has_at_most_64_bits() {
        assert_eq!(check_range(&features(&[(40, MAX_FEATURE), (41, -MAX_FEATURE)])), Ok(()));
        for value in [1e19, -1e19, f32::MAX] {
            let error = GraphError::FeatureTooLarge { node: 1, column: 40 };
            assert_eq!(check_range(&features(&[(40, value)])), Err(error));
        }
    }

    #[test]
    fn a_tensor_has_at_most_as_many_elements_as_xla_counts() {
        let quarter = 65_536.0;
        let at_most = [(21, quarter), (22, quarter), (23, quarter), (24, 32_768.0)];
        assert_eq!(check_range(&features(&at_most)), Ok(()));
        let too_large = Err(GraphError::TensorTooLarge { node: 1 });
        assert_eq!(check_range(&features(&[&at_most[..], &[(26, 2.0)]].concat())), too_large);
        assert_eq!(check_range(&features(&[(21, MAX_FEATURE), (22, MAX_FEATURE)])), too_large);
        assert_eq!(check_range(&features(&[(21, 0.0), (22, 1e18), (23, 100.0)])), too_large);
        assert_eq!(check_range(&features(&[(21, -MAX_FEATURE), (22, -MAX_FEATURE)])), Ok(()));
    }
}
