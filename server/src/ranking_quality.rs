//! How well scores rank measured run times: of one graph, and over several.

use std::collections::BTreeMap;

use hlorank_adaptation::statistics::mean;
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
    pub fn new(scores: &[f32], seconds: &[f64], unit: ScoreUnit) -> Option<Self> {
        if scores.len() < MIN_MEASURED {
            return None;
        }
        let outcomes = scores
            .iter()
            .zip(seconds)
            .map(|(&score, &run_time)| Outcome {
                run_time,
                score: score.into(),
            });
        let outcomes: Vec<Outcome> = outcomes.collect();
        let pairs = PairCounts::new(&outcomes)?;
        Some(Self {
            measured: outcomes.len(),
            tau: pairs.kendall_tau()?,
            ordered_pairs: pairs.ordered_pair_accuracy()?,
            regret: top_slowdown(&outcomes, 1)?,
            time: (unit == ScoreUnit::Seconds)
                .then(|| TimeQuality::new(&outcomes))
                .flatten(),
        })
    }
}

impl TimeQuality {
    /// Configurations without a score have none.
    fn new(outcomes: &[Outcome]) -> Option<Self> {
        // Logarithms weigh half and twice the time alike, and graphs of microseconds and of
        // seconds.
        let outcomes = outcomes.iter();
        let logs = outcomes.map(|outcome| libm::log(outcome.score / outcome.run_time));
        let logs: Vec<f64> = logs.filter(|log| log.is_finite()).collect();
        (!logs.is_empty()).then(|| Self {
            log_ratio: mean(&logs),
            log_error: mean(&logs.iter().map(|log| log.abs()).collect::<Vec<_>>()),
        })
    }
}

/// How well a model version ranks, over several graphs. Every graph counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QualitySummary {
    /// Number of graphs.
    pub graphs: usize,
    /// Number of distinct measured configurations of all graphs.
    pub measured: usize,
    /// Mean of Kendall's tau.
    pub tau: f64,
    /// Mean share of pairs in the right order.
    pub ordered_pairs: f64,
    /// Mean slowdown of the configuration with the lowest score.
    pub regret: f64,
    /// Predicted over measured run time, if the unit of scores is seconds: the geometric mean, 1 if predictions are right on
    /// average.
    pub time_ratio: Option<f64>,
    /// The larger over the smaller of predicted and measured run time: the geometric mean.
    pub time_error: Option<f64>,
}

impl QualitySummary {
    /// Sums up graphs.
    #[must_use]
    pub fn new(graphs: &[GraphQuality]) -> Self {
        let of =
            |value: fn(&GraphQuality) -> f64| mean(&graphs.iter().map(value).collect::<Vec<_>>());
        let times: Vec<TimeQuality> = graphs.iter().filter_map(|graph| graph.time).collect();
        let time = |value: fn(&TimeQuality) -> f64| {
            (!times.is_empty())
                .then(|| libm::exp(mean(&times.iter().map(value).collect::<Vec<_>>())))
        };
        Self {
            graphs: graphs.len(),
            measured: graphs.iter().map(|graph| graph.measured).sum(),
            tau: of(|graph| graph.tau),
            ordered_pairs: of(|graph| graph.ordered_pairs),
            regret: of(|graph| graph.regret),
            time_ratio: time(|time| time.log_ratio),
            time_error: time(|time| time.log_error),
        }
    }

    /// Sums up graphs by key.
    pub fn by_key<K: Ord>(
        graphs: impl IntoIterator<Item = (K, GraphQuality)>,
    ) -> BTreeMap<K, Self> {
        let mut groups = BTreeMap::<K, Vec<GraphQuality>>::new();
        for (key, graph) in graphs {
            groups.entry(key).or_default().push(graph);
        }
        let groups = groups.into_iter();
        groups
            .map(|(key, graphs)| (key, Self::new(&graphs)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_order_has_tau_1_and_no_regret() {
        let quality =
            GraphQuality::new(&[1.0, 2.0, 9.0], &[1e-3, 2e-3, 3e-3], ScoreUnit::None).unwrap();
        assert_eq!(
            (quality.measured, quality.tau, quality.ordered_pairs),
            (3, 1.0, 1.0)
        );
        assert_eq!((quality.regret, quality.time), (0.0, None));
    }

    #[test]
    fn the_regret_is_that_of_the_lowest_score() {
        let quality =
            GraphQuality::new(&[3.0, 1.0, 2.0], &[2.0, 3.0, 4.0], ScoreUnit::None).unwrap();
        assert_eq!((quality.regret, quality.ordered_pairs), (0.5, 1.0 / 3.0));
    }

    #[test]
    fn seconds_twice_as_long_as_measured_have_a_ratio_of_two() {
        let quality =
            GraphQuality::new(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0], ScoreUnit::Seconds).unwrap();
        let TimeQuality {
            log_ratio,
            log_error,
        } = quality.time.unwrap();
        assert!((log_ratio - 2_f64.ln()).abs() < 1e-12 && (log_error - 2_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn lists_that_say_nothing_have_no_quality() {
        for (scores, seconds) in [
            (&[1.0, 2.0][..], &[1.0, 2.0][..]),
            (&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]),
            (&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0]),
            (&[f32::NAN, 2.0, 3.0], &[1.0, 2.0, 3.0]),
        ] {
            let quality = GraphQuality::new(scores, seconds, ScoreUnit::None);
            assert_eq!(quality, None, "{scores:?}");
        }
    }
}
