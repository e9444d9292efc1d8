//! Quality of a ranking against measured run times: the metrics of `TpuGraphs` (spec §8).

use std::cmp::Ordering;

/// The measured run time and the score of a configuration. Both are higher for a slower configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Measured run time, in any unit.
    pub run_time: f64,
    /// Score of the model.
    pub score: f64,
}

/// Counts of pairs of configurations, by how their run times and scores agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairCounts {
    /// All pairs.
    pub all: u64,
    /// Pairs with equal run times.
    pub equal_run_times: u64,
    /// Pairs with equal scores.
    pub equal_scores: u64,
    /// Pairs with equal run times and equal scores.
    pub equal_both: u64,
    /// Pairs that run times and scores order differently.
    pub discordant: u64,
}

impl PairCounts {
    /// Counts the pairs in O(n log n) (Knight 1966). Returns `None` if a run time or score is NaN.
    pub fn new(outcomes: &[Outcome]) -> Option<Self> {
        let has_nan = |outcome: &Outcome| outcome.run_time.is_nan() || outcome.score.is_nan();
        if outcomes.iter().any(has_nan) {
            return None;
        }
        // Pairs with equal run times are neither concordant nor discordant. Sorted by score as
        // well, they are in ascending order, so that they count as no inversions.
        let mut sorted = outcomes.to_vec();
        sorted.sort_unstable_by(compare);
        let mut scores: Vec<f64> = sorted.iter().map(|outcome| outcome.score).collect();
        let equal_run_times = equal_pairs(&sorted, |one, other| one.run_time == other.run_time);
        let equal_both = equal_pairs(&sorted, |one, other| one == other);
        // The scores are in the order of run times, and each inversion is a pair that they order
        // the other way. Counting also sorts them, so that equal ones are adjacent.
        let discordant = sort_counting_inversions(&mut scores);
        Some(Self {
            all: pairs(outcomes.len()),
            equal_run_times,
            equal_scores: equal_pairs(&scores, |one, other| one == other),
            equal_both,
            discordant,
        })
    }

    /// Returns the number of pairs that run times and scores order alike.
    pub fn concordant(&self) -> u64 {
        // The pairs that are equal in both were subtracted twice.
        self.all + self.equal_both - self.equal_run_times - self.equal_scores - self.discordant
    }

    /// Returns Kendall's tau-b, as scipy computes it: 1 for the same order, −1 for the reverse. Returns `None` if all
    /// run times or all scores are equal.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    pub fn kendall_tau(&self) -> Option<f64> {
        let different_run_times = self.all - self.equal_run_times;
        let different_scores = self.all - self.equal_scores;
        if different_run_times == 0 || different_scores == 0 {
            return None;
        }
        let balance = self.concordant() as f64 - self.discordant as f64;
        // The roots are taken one by one, as scipy does, so that both round alike.
        let tau = balance / (different_run_times as f64).sqrt() / (different_scores as f64).sqrt();
        Some(tau.clamp(-1.0, 1.0))
    }

    /// Returns the share of pairs with different run times whose scores have the same order. Equal scores count as
    /// wrong. Returns `None` if all run times are equal.
    #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
    pub fn ordered_pair_accuracy(&self) -> Option<f64> {
        let different_run_times = self.all - self.equal_run_times;
        (different_run_times > 0).then(|| self.concordant() as f64 / different_run_times as f64)
    }
}

/// Compares run times, and then scores. No number is NaN, and 0 and −0 are equal.
fn compare(one: &Outcome, other: &Outcome) -> Ordering {
    let compare = |one: f64, other: f64| one.partial_cmp(&other).unwrap_or(Ordering::Equal);
    compare(one.run_time, other.run_time).then(compare(one.score, other.score))
}

fn pairs(items: usize) -> u64 {
    let items = items as u64;
    items * items.saturating_sub(1) / 2
}

/// Counts the pairs of equal items. Equal items must be adjacent.
fn equal_pairs<T>(sorted: &[T], equal: impl Fn(&T, &T) -> bool) -> u64 {
    sorted.chunk_by(equal).map(|run| pairs(run.len())).sum()
}

/// Sorts the scores (merge sort) and counts the pairs that were in descending order.
fn sort_counting_inversions(scores: &mut [f64]) -> u64 {
    let mut merged = scores.to_vec();
    let mut inversions = 0;
    let mut width = 1;
    while width < scores.len() {
        for (run, merged) in scores.chunks(2 * width).zip(merged.chunks_mut(2 * width)) {
            inversions += merge(run.split_at(width.min(run.len())), merged);
        }
        scores.copy_from_slice(&merged);
        width *= 2;
    }
    inversions
}

/// Merges two sorted runs and counts the pairs whose second number is less than the first.
fn merge((left, right): (&[f64], &[f64]), merged: &mut [f64]) -> u64 {
    let (mut left, mut right) = (left, right);
    let mut inversions = 0;
    for slot in merged {
        match (left, right) {
            ([first, rest @ ..], [second, ..]) if first <= second => (*slot, left) = (*first, rest),
            ([first, rest @ ..], []) => (*slot, left) = (*first, rest),
            (_, [second, rest @ ..]) => {
                // All that is left of the first run is larger than this number of the second.
                inversions += left.len() as u64;
                (*slot, right) = (*second, rest);
            }
            ([], []) => {}
        }
    }
    inversions
}

/// Returns how much slower the fastest of the `top` best-ranked configurations is than the fastest of all: 0.1 is 10 %.
/// Configurations with equal scores rank by number. Returns `None` without configurations, or if `top` is 0.
pub fn top_slowdown(outcomes: &[Outcome], top: usize) -> Option<f64> {
    let mut ranked: Vec<&Outcome> = outcomes.iter().collect();
    // The sort is stable, so equal scores stay in the order of their numbers.
    ranked.sort_by(|one, other| one.score.total_cmp(&other.score));
    let chosen = fastest(ranked.into_iter().take(top))?;
    Some(chosen / fastest(outcomes)? - 1.0)
}

/// Returns how much slower the compiler's default is than the fastest configuration, given the run time of the default.
pub fn default_slowdown(outcomes: &[Outcome], default_run_time: f64) -> Option<f64> {
    Some(default_run_time / fastest(outcomes)? - 1.0)
}

fn fastest<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Option<f64> {
    outcomes
        .into_iter()
        .map(|outcome| outcome.run_time)
        .min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn outcomes(pairs: &[(i32, i32)]) -> Vec<Outcome> {
        let outcome = |&(run_time, score): &(i32, i32)| Outcome {
            run_time: f64::from(run_time),
            score: f64::from(score),
        };
        pairs.iter().map(outcome).collect()
    }

    /// Both metrics as spec §8 defines them: over all ordered pairs.
    fn by_definition(outcomes: &[Outcome]) -> (Option<f64>, Option<f64>) {
        let (mut balance, mut run_times, mut scores, mut right) = (0.0, 0.0_f64, 0.0_f64, 0.0);
        for one in outcomes {
            for other in outcomes {
                let sign = |difference: f64| {
                    if difference == 0.0 {
                        0.0
                    } else {
                        difference.signum()
                    }
                };
                let (time, score) = (
                    sign(one.run_time - other.run_time),
                    sign(one.score - other.score),
                );
                balance += time * score;
                run_times += time.abs();
                scores += score.abs();
                right += f64::from(u8::from(time > 0.0 && score > 0.0));
            }
        }
        let tau = (run_times > 0.0 && scores > 0.0).then(|| balance / (run_times * scores).sqrt());
        (tau, (run_times > 0.0).then(|| right / (run_times / 2.0)))
    }

    #[test]
    fn tau_equals_that_of_scipy() {
        // scipy.stats.kendalltau([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]): the example of its documentation.
        let example = outcomes(&[(12, 1), (2, 4), (1, 7), (12, 1), (2, 0)]);
        let scipy = PairCounts::new(&example).unwrap().kendall_tau().unwrap();
        assert!((scipy - -0.471_404_520_791_031_8).abs() < 1e-15, "{scipy}");
    }

    #[test]
    fn nan_is_not_ranked() {
        let outcome = Outcome {
            run_time: 1.0,
            score: f64::NAN,
        };
        assert_eq!(PairCounts::new(&[outcome]), None);
    }

    proptest! {
        #[test]
        fn both_metrics_equal_their_definitions(pairs in vec((-4..5_i32, -4..5_i32), 0..60)) {
            let outcomes = outcomes(&pairs);
            let counts = PairCounts::new(&outcomes).unwrap();
            let (tau, accuracy) = by_definition(&outcomes);
            let close = |one: Option<f64>, other: Option<f64>| match (one, other) {
                (Some(one), Some(other)) => (one - other).abs() < 1e-12,
                (one, other) => one == other,
            };
            prop_assert!(close(counts.kendall_tau(), tau), "{:?} {:?}", counts.kendall_tau(), tau);
            prop_assert!(close(counts.ordered_pair_accuracy(), accuracy));
        }
    }

    #[test]
    fn the_fastest_of_the_best_ranked_counts_and_the_default_is_compared_with_the_best() {
        let outcomes = outcomes(&[(20, 1), (15, 1), (10, 3), (12, 2)]);
        for (top, slowdown) in [
            (0, None),
            (1, Some(1.0)),
            (2, Some(0.5)),
            (3, Some(12.0 / 10.0 - 1.0)),
            (4, Some(0.0)),
            (100, Some(0.0)),
        ] {
            assert_eq!(top_slowdown(&outcomes, top), slowdown, "the top {top}");
        }
        assert_eq!(top_slowdown(&[], 1), None);
        assert_eq!(default_slowdown(&outcomes, 15.0), Some(0.5));
    }
}
