use hlorank_graph::pace;

/// Returns Kendall's tau-b of two lists of numbers: their agreement about the order of pairs, from −1 to 1. It is 0 if
/// all numbers of a list are equal.
pub(super) fn tau(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0_i64; 3];
    for first in pace::in_steps(16, 0..one.len()) {
        for second in 0..first {
            let [of_one, of_other] = [one, other].map(|list| sign(list[first], list[second]));
            for (sum, add) in sums
                .iter_mut()
                .zip([of_one * of_other, of_one.abs(), of_other.abs()])
            {
                *sum += add;
            }
        }
    }
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are far fewer than 2^53 pairs"
    )]
    let [agreed, untied_one, untied_other] = sums.map(|sum| sum as f64);
    let untied = (untied_one * untied_other).sqrt();
    if untied == 0.0 { 0.0 } else { agreed / untied }
}

/// Returns how many standard deviations of chance a tau is from 0.
pub(super) fn deviations_from_chance(tau: f64, measured: usize) -> f64 {
    tau / variance_by_chance(measured).sqrt()
}

/// The variance of Kendall's tau of two orders that have nothing to do with each other.
#[expect(
    clippy::cast_precision_loss,
    reason = "there are far fewer than 2^53 measurements"
)]
pub(super) fn variance_by_chance(measured: usize) -> f64 {
    let measured = measured as f64;
    2.0 * (2.0 * measured + 5.0) / (9.0 * measured * (measured - 1.0))
}

fn sign(one: f64, other: f64) -> i64 {
    i64::from(one > other) - i64::from(one < other)
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
