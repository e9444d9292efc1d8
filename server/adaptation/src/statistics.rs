//! Figures of lists of numbers, whose sums have a fixed order, and normal distributions.

use hlorank_graph::quality::{Outcome, PairCounts};

/// A normal distribution.
#[derive(Clone, Copy, Debug)]
pub struct Normal {
    /// The mean.
    pub mean: f64,
    /// The square of the standard deviation.
    pub variance: f64,
}

/// A count as a scalar.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub const fn scalar(count: usize) -> f64 {
    count as f64
}

/// The mean; 0 of no numbers.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / scalar(values.len().max(1))
}

/// The numbers around their mean.
pub fn centered(mut values: Vec<f64>) -> Vec<f64> {
    let center = mean(&values);
    for value in &mut values {
        *value -= center;
    }
    values
}

/// The standard deviation.
pub fn deviation(values: &[f64]) -> f64 {
    let squares = centered(values.to_vec()).into_iter().map(|off| off * off);
    mean(&squares.collect::<Vec<_>>()).sqrt()
}

/// The squared distance of two points.
pub fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    let pairs = one.iter().zip(other);
    pairs
        .map(|(one, other)| (one - other) * (one - other))
        .sum()
}

/// Returns Kendall's tau-b of two lists of numbers: their agreement about the order of pairs, from −1 to 1. It is 0 if
/// all numbers of a list are equal, because then there is no order to agree with.
pub fn tau(one: &[f64], other: &[f64]) -> f64 {
    let pairs = one.iter().zip(other);
    let outcomes = pairs.map(|(&run_time, &score)| Outcome { run_time, score });
    PairCounts::new(&outcomes.collect::<Vec<_>>())
        .and_then(|counts| counts.kendall_tau())
        .unwrap_or(0.0)
}

/// The variance of Kendall's tau of two orders of this many numbers that have nothing to do with each other.
pub const fn variance_by_chance(count: usize) -> f64 {
    // Kendall (1938), for orders without ties.
    let count = scalar(count);
    2.0 * (2.0 * count + 5.0) / (9.0 * count * (count - 1.0))
}

impl Normal {
    /// Mean and variance of a mixture of distributions, each with its weight.
    pub fn mixture(weighted: impl Iterator<Item = (f64, Self)>) -> Self {
        let weighted: Vec<(f64, Self)> = weighted.collect();
        let mean: f64 = weighted
            .iter()
            .map(|(weight, each)| weight * each.mean)
            .sum();
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

    /// By how much a number of this distribution is expected to lie below another one, if it does.
    pub fn improvement(self, lowest: f64) -> f64 {
        let (mean, deviation) = (lowest - self.mean, self.variance.sqrt());
        if deviation <= 0.0 {
            return mean.max(0.0);
        }
        // This is the closed form of Jones, Schonlau and Welch (1998). Rounding may make it negative.
        let standard = mean / deviation;
        let density = libm::exp(-0.5 * standard * standard) / std::f64::consts::TAU.sqrt();
        let below = 0.5 * libm::erfc(-standard * std::f64::consts::FRAC_1_SQRT_2);
        (mean * below + deviation * density).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_orders_agree_and_reversed_ones_do_not() {
        assert_eq!(tau(&[1.0, 2.0, 3.0], &[10.0, 20.0, 50.0]), 1.0);
        assert_eq!(tau(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        assert_eq!(tau(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }

    #[test]
    fn ties_count_as_in_tau_b() {
        // Pairs: 5 agree, 0 disagree, one is tied in the first list.
        let tau = tau(&[1.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0]);
        assert!((tau - 5.0 / 30_f64.sqrt()).abs() < 1e-15);
    }

    #[test]
    fn improvement_is_expected_of_what_is_fast_or_uncertain() {
        let expected = |lower: f64, deviation: f64| {
            let mean = -lower;
            let variance = deviation * deviation;
            Normal { mean, variance }.improvement(0.0)
        };
        assert_eq!(expected(0.25, 0.0), 0.25);
        assert_eq!(expected(-0.25, 0.0), 0.0);
        // The mean of the positive half of a standard normal distribution, times its probability.
        assert!((expected(0.0, 1.0) - 0.398_942_280_401_432_7).abs() < 1e-12);
        assert!(expected(-0.2, 0.5) > expected(-0.1, 0.01));
        assert!(expected(-100.0, 1.0) >= 0.0);
    }
}
