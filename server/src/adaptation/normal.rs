use super::linear_algebra::{dot, scalar};

/// A normal distribution of ln(seconds).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normal {
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Normal {
    /// Mean and variance of a mixture of distributions, each with its weight.
    pub(super) fn mixture(weighted: impl Iterator<Item = (f64, Self)>) -> Self {
        let weighted: Vec<(f64, Self)> = weighted.collect();
        let means = weighted.iter().map(|(weight, each)| weight * each.mean);
        let mean: f64 = means.sum();
        // The law of total variance: that within the distributions, and that of their means.
        let variance = weighted.iter().map(|(weight, each)| {
            let off = each.mean - mean;
            weight * (each.variance + off * off)
        });
        Self {
            mean,
            variance: variance.sum(),
        }
    }

    /// By how much it is expected to lower the lowest ln(seconds).
    pub(super) fn improvement(self, lowest: f64) -> f64 {
        expected_improvement(lowest - self.mean, self.variance.sqrt())
    }
}

/// The variance of residuals around 0, given the deviation that is expected of them before they are
/// known. It counts as much as one of them.
pub(super) fn variance(residuals: &[f64], expected: f64) -> f64 {
    let squares = dot(residuals, residuals);
    (expected * expected + squares) / (1.0 + scalar(residuals.len()))
}

/// What a normally distributed number exceeds 0 by in expectation, given its mean and deviation.
fn expected_improvement(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    // This is the closed form of Jones, Schonlau and Welch (1998). Rounding may make it negative.
    let standard = mean / deviation;
    let density = libm::exp(-0.5 * standard * standard) / std::f64::consts::TAU.sqrt();
    let below = 0.5 * libm::erfc(-standard * std::f64::consts::FRAC_1_SQRT_2);
    (mean * below + deviation * density).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvement_is_expected_of_what_is_fast_or_uncertain() {
        assert_eq!(expected_improvement(0.25, 0.0), 0.25);
        assert_eq!(expected_improvement(-0.25, 0.0), 0.0);
        // The mean of the positive half of a standard normal distribution, times its probability.
        assert!((expected_improvement(0.0, 1.0) - 0.398_942_280_401_432_7).abs() < 1e-12);
        assert!(expected_improvement(-0.2, 0.5) > expected_improvement(-0.1, 0.01));
        assert!(expected_improvement(-100.0, 1.0) >= 0.0);
    }
}
