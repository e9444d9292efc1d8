//! How well a ranking by what was learned is expected to agree with run times.
//!
//! What the measurements leave open of two configurations gives the probability that their predicted order is right, and so the tau
//! that they expect of a list. They expect too much, the more the less random they are: suggested configurations are faster than
//! most, and say less of the others. A line corrects that. Its numbers, and those of the deviation, are weighted least squares over
//! simulated searches and random draws in twelve kinds of lists, and hold for families of kernels that they were not fitted to:
//! `models/results/trust.txt` has the recipe and the errors.

use super::Basis;
use crate::statistics::{Normal, scalar};

/// Kendall's tau of a ranking and of run times, as expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedTau {
    /// The mean.
    pub tau: f64,
    /// The standard deviation.
    pub deviation: f64,
}

/// What is predicted of some configurations of a list, without those that were measured.
#[derive(Clone, Debug, Default)]
pub struct PredictedList(Vec<Normal>);

/// Number of measurements below which nothing is expected.
const ENOUGH: usize = 5;

/// Number of configurations that are kept, of the first batches, and of those that are compared with each other.
const KEPT: usize = 1_024;
const COMPARED: usize = 64;

/// What is expected if nothing else says something.
const LEAST: f64 = 0.066;

/// How much it rises with the tau that the measurements expect, and with the share of the list that is measured.
const BY_OWN: f64 = 0.613;
const BY_SHARE: f64 = 0.189;

/// How much higher it is if predictions rest on scores, too.
const WITH_SCORES: f64 = 0.092;

/// How much it changes with the share of the list that is missing to half of it, of what is predicted to be faster than the mean of
/// the measured times.
const BY_SPEED: f64 = -0.208;

/// The variance of a tau around it where 0 is expected: of every list, and what is divided by the number of measurements and by that
/// of the other configurations.
const VARIANCE: [f64; 3] = [0.023, 0.22, 0.15];

/// Deviations around the mean between which four of five values lie.
const FOUR_OF_FIVE: f64 = 1.28;

impl ExpectedTau {
    /// An interval that holds the tau of four of five lists.
    pub fn interval(&self) -> (f64, f64) {
        let half = FOUR_OF_FIVE * self.deviation;
        ((self.tau - half).max(-1.0), (self.tau + half).min(1.0))
    }
}

impl PredictedList {
    /// What is predicted of the configurations of a batch.
    pub fn new(predicted: Vec<Normal>) -> Self {
        Self(predicted)
    }

    /// Adds what is predicted of a further batch.
    pub fn add(&mut self, next: Self) {
        self.0.extend(next.0);
        self.0.truncate(KEPT);
    }

    /// Kendall's tau of predicted and true times over the configurations that were not measured, given the number of these; `None`
    /// if too few were measured or are left.
    pub fn expected_tau(&self, basis: &Basis, left: usize) -> Option<ExpectedTau> {
        let step = self.0.len().div_ceil(COMPARED).max(1);
        let some: Vec<Normal> = self.0.iter().step_by(step).copied().collect();
        if basis.learned < ENOUGH || some.len() < 2 {
            return None;
        }
        let faster = some.iter().filter(|each| each.mean < basis.mean_time);
        let missing = 0.5 - scalar(faster.count()) / scalar(some.len());
        let [measured, left] = [basis.learned, left.max(1)].map(scalar);
        let tau = LEAST
            + BY_OWN * own_tau(&some)
            + BY_SHARE * measured / (measured + left)
            + WITH_SCORES * f64::from(u8::from(basis.uses_scores))
            + BY_SPEED * missing.max(0.0);
        let [every, by_measured, by_left] = VARIANCE;
        let variance = every + by_measured / measured + by_left / left;
        Some(ExpectedTau {
            tau,
            // Lists that are ranked well differ less.
            deviation: (variance * (1.0 - tau * tau)).sqrt(),
        })
    }
}

/// The tau that independent distributions expect of the order of their means.
fn own_tau(all: &[Normal]) -> f64 {
    let mut sum = 0.0;
    let mut pairs = 0.0;
    for (number, one) in all.iter().enumerate() {
        for other in &all[..number] {
            let apart = (one.mean - other.mean).abs();
            pairs += 1.0;
            // The difference of two normal numbers is normal. Equal means have no order, and no variance to divide by.
            if apart > 0.0 {
                sum += libm::erf(apart / (2.0 * (one.variance + other.variance)).sqrt());
            }
        }
    }
    sum / pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list whose predicted times lie this far apart, with this deviation of each.
    fn list(apart: f64, deviation: f64) -> PredictedList {
        let each = |number: u32| Normal {
            mean: apart * f64::from(number),
            variance: deviation * deviation,
        };
        PredictedList::new((0..50).map(each).collect())
    }

    fn basis(learned: usize) -> Basis {
        Basis {
            learned,
            mean_time: f64::INFINITY,
            ..Basis::default()
        }
    }

    fn tau(list: &PredictedList, basis: &Basis) -> f64 {
        list.expected_tau(basis, 1_000).unwrap().tau
    }

    #[test]
    fn clear_predictions_are_expected_to_be_right_and_vague_ones_are_not() {
        let [clear, vague] = [list(0.1, 0.1), list(0.001, 0.1)].map(|list| tau(&list, &basis(50)));
        assert!(clear > 0.6 && vague < 0.3, "{clear} {vague}");
    }

    #[test]
    fn measurements_of_the_fastest_alone_say_less() {
        let random = Basis {
            mean_time: 2.5,
            ..basis(20)
        };
        let fastest = Basis {
            mean_time: 0.1,
            ..basis(20)
        };
        let list = list(0.1, 0.1);
        assert!(tau(&list, &fastest) < tau(&list, &random) - 0.05);
    }

    #[test]
    fn many_measurements_and_configurations_narrow_the_interval() {
        let width = |learned, left| {
            let vague = list(0.001, 0.1).expected_tau(&basis(learned), left);
            vague.unwrap().deviation
        };
        assert!(width(100, 1_000) < width(5, 1_000) && width(20, 1_000) < width(20, 10));
    }

    #[test]
    fn nothing_is_expected_below_five_measurements_or_if_nothing_is_left() {
        assert_eq!(list(0.1, 0.1).expected_tau(&basis(4), 1_000), None);
        assert_eq!(PredictedList::default().expected_tau(&basis(5), 0), None);
        let equal = list(0.0, 0.0);
        assert!(tau(&equal, &basis(5)).is_finite());
    }
}
