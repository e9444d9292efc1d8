use hlorank_graph::quality::{Outcome, PairCounts};

use super::linear_algebra::scalar;

/// Returns Kendall's tau-b of two lists of numbers: their agreement about the order of pairs, from −1 to 1. It is 0 if
/// all numbers of a list are equal, because then there is no order to agree with.
pub(super) fn tau(one: &[f64], other: &[f64]) -> f64 {
    let pairs = one.iter().zip(other);
    let outcomes: Vec<Outcome> = pairs
        .map(|(&run_time, &score)| Outcome { run_time, score })
        .collect();
    PairCounts::of(&outcomes)
        .and_then(|counts| counts.kendall_tau())
        .unwrap_or(0.0)
}

/// Returns how many standard deviations of chance a tau is from 0.
pub(super) fn deviations_from_chance(tau: f64, measured: usize) -> f64 {
    tau / variance_by_chance(measured).sqrt()
}

/// The variance of Kendall's tau of two orders that have nothing to do with each other.
pub(super) const fn variance_by_chance(measured: usize) -> f64 {
    // Kendall (1938), for orders without ties.
    let measured = scalar(measured);
    2.0 * (2.0 * measured + 5.0) / (9.0 * measured * (measured - 1.0))
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
}
