use hlorank_graph::quality::{Outcome, PairCounts, top_slowdown};

use crate::model::ScoreUnit;

/// How well a model version ranks the measured configurations of one graph on one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphQuality {
    /// Number of distinct configurations.
    pub measured: usize,
    /// Kendall's tau-b of scores and run times.
    pub tau: f64,
    /// Share of the pairs of different run times whose scores have the same order.
    pub ordered_pairs: f64,
    /// How much slower the configuration with the lowest score is than the fastest one: 0.1 is 10 %.
    pub regret: f64,
    /// How well scores predict run times, if their unit is seconds.
    pub time: Option<TimeQuality>,
}

/// How far predicted run times are from measured ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeQuality {
    /// Mean of ln(predicted / measured): 0 if predictions are right on average.
    pub log_ratio: f64,
    /// Mean of its absolute value.
    pub log_error: f64,
}

/// Fewer configurations say next to nothing about a ranking.
const MIN_MEASURED: usize = 3;

impl GraphQuality {
    /// Compares scores with run times. Returns nothing if there are fewer than three configurations, or if all run times or
    /// all scores are equal.
    #[must_use]
    pub fn of(scores: &[f32], seconds: &[f64], unit: ScoreUnit) -> Option<Self> {
        if scores.len() < MIN_MEASURED {
            return None;
        }
        let outcomes = outcomes(scores, seconds);
        let pairs = PairCounts::of(&outcomes)?;
        Some(Self {
            measured: outcomes.len(),
            tau: pairs.kendall_tau()?,
            ordered_pairs: pairs.ordered_pair_accuracy()?,
            regret: top_slowdown(&outcomes, 1)?,
            time: (unit == ScoreUnit::Seconds)
                .then(|| TimeQuality::of(&outcomes))
                .flatten(),
        })
    }
}

fn outcomes(scores: &[f32], seconds: &[f64]) -> Vec<Outcome> {
    let outcome = |(&score, &run_time): (&f32, &f64)| Outcome {
        run_time,
        score: score.into(),
    };
    scores.iter().zip(seconds).map(outcome).collect()
}

impl TimeQuality {
    /// Configurations without a score have none.
    fn of(outcomes: &[Outcome]) -> Option<Self> {
        // Logarithms weigh half and twice the time alike, and graphs of microseconds and of
        // seconds.
        let outcomes = outcomes.iter();
        let logs = outcomes.map(|outcome| libm::log(outcome.score / outcome.run_time));
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        (!logs.is_empty()).then(|| Self {
            log_ratio: mean(logs.iter().copied()),
            log_error: mean(logs.iter().map(|log| log.abs())),
        })
    }
}

/// The mean of some numbers; 0 of none.
pub(super) fn mean(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sum = 0.0;
    let mut count = 0.0_f64;
    for number in numbers {
        sum += number;
        count += 1.0;
    }
    sum / count.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_order_has_tau_1_and_no_regret() {
        let quality =
            GraphQuality::of(&[1.0, 2.0, 9.0], &[1e-3, 2e-3, 3e-3], ScoreUnit::None).unwrap();
        assert_eq!(
            (quality.measured, quality.tau, quality.ordered_pairs),
            (3, 1.0, 1.0)
        );
        assert_eq!((quality.regret, quality.time), (0.0, None));
    }

    #[test]
    fn the_regret_is_that_of_the_lowest_score() {
        let quality =
            GraphQuality::of(&[3.0, 1.0, 2.0], &[2.0, 3.0, 4.0], ScoreUnit::None).unwrap();
        assert_eq!((quality.regret, quality.ordered_pairs), (0.5, 1.0 / 3.0));
    }

    #[test]
    fn seconds_twice_as_long_as_measured_have_a_ratio_of_two() {
        let quality =
            GraphQuality::of(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0], ScoreUnit::Seconds).unwrap();
        let TimeQuality {
            log_ratio,
            log_error,
        } = quality.time.unwrap();
        assert!((log_ratio - 2_f64.ln()).abs() < 1e-12 && (log_error - 2_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn lists_that_say_nothing_have_no_quality() {
        assert_eq!(
            GraphQuality::of(&[1.0, 2.0], &[1.0, 2.0], ScoreUnit::None),
            None
        );
        assert_eq!(
            GraphQuality::of(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0], ScoreUnit::None),
            None
        );
        assert_eq!(
            GraphQuality::of(&[1.0, 2.0, 3.0], &[1.0; 3], ScoreUnit::None),
            None
        );
        assert_eq!(
            GraphQuality::of(&[f32::NAN, 2.0, 3.0], &[1.0, 2.0, 3.0], ScoreUnit::None),
            None
        );
    }
}
