//! What lists that are left out say of those that nobody measured.

use std::{collections::BTreeSet, iter::zip};

use super::learner::{Learner, weight};
use crate::{
    split_mix::{below, mix},
    statistics::{mean, scalar, tau},
};

/// A list that was left out, and what the others say of it.
pub(super) struct LeftOutList {
    pub(super) list: usize,
    /// Number of its configurations.
    pub(super) configs: usize,
    /// Kendall's tau of its times, beside what the model explains, and of what is predicted.
    pub(super) tau: f64,
    /// The same of its times and the model's scores.
    pub(super) score_tau: f64,
    /// The weighted sum of squares of what is left over of its times, and the sum of weights.
    pub(super) squares: f64,
    pub(super) weights: f64,
    /// What is predicted of the first pick, and its ln(slowdown).
    pub(super) pick: (f64, f64),
}

/// How far first picks of lists that were left out were above the fastest, by what is predicted of them.
#[derive(Clone, Debug)]
pub(super) struct Slowdowns {
    /// ln(slowdown) where the predictions have their mean, and how much it rises with them.
    mean: f64,
    center: f64,
    rise: f64,
    /// How many times the expected ln(slowdown) nine of ten do not exceed.
    upper: f64,
    /// Mean number of measured configurations of the lists.
    configs: f64,
}

/// An expected time over that of the fastest, and what nine of ten do not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// The mean.
    pub expected: f64,
    /// What nine of ten do not exceed.
    pub upper: f64,
}

/// Number of lists from which on several are left out at once, in how many parts, and from which on one part is enough.
const LEFT_OUT_BY_ONE: usize = 12;
const PARTS: usize = 4;
const LEFT_OUT_ONCE: usize = 100;

/// Rounds of learning without some lists.
const ROUNDS_OF_CHECK: usize = 200;

/// By how many times a batch may have more configurations than those lists of which the first picks are known: the pick from a few
/// measured ones says little of that from many.
const MORE: f64 = 2.0;

/// Minimum number of first picks that say how far a further one is above the fastest.
const MIN_PICKS: usize = 5;

/// Leaves some lists out in turn, and compares them with what the others say; none if there is only one.
pub(super) fn left_out(learner: &Learner<'_>, levels: &[f64]) -> Vec<LeftOutList> {
    let all = 0..learner.lists.len();
    let is_own = |list: &usize| learner.lists[*list].other_target.is_none();
    let own: Vec<usize> = all.clone().filter(is_own).collect();
    if all.len() < 2 {
        return Vec::new();
    }
    // Lists of other targets are compared if there are no others.
    let compared = if own.is_empty() { all.collect() } else { own };
    let (parts, used) = match compared.len() {
        few if few < LEFT_OUT_BY_ONE => (few, few),
        some if some < LEFT_OUT_ONCE => (PARTS, PARTS),
        _ => (PARTS, 1),
    };
    let mut folds = vec![BTreeSet::new(); parts];
    for (place, &list) in compared.iter().enumerate() {
        // A draw, because the lists of a target may have an order.
        let part = if parts < compared.len() {
            below(mix(list as u64), parts)
        } else {
            place
        };
        folds[part].insert(list);
    }
    let folds = folds.iter().take(used);
    let compared = folds.flat_map(|fold| {
        let others = learner.fit(levels, ROUNDS_OF_CHECK, |list| !fold.contains(&list));
        compare(learner, levels, fold, &learner.known(&others))
    });
    compared.collect()
}

/// Compares lists with what others predict of all rows.
fn compare(
    learner: &Learner<'_>,
    levels: &[f64],
    fold: &BTreeSet<usize>,
    predicted: &[f64],
) -> Vec<LeftOutList> {
    let mut compared = Vec::new();
    let mut end = 0;
    for (list, level) in levels.iter().enumerate() {
        let start = end;
        end += learner.lists[list].measurements.times.len();
        if !fold.contains(&list) {
            continue;
        }
        let (times, predicted) = (&learner.times[start..end], &predicted[start..end]);
        let (mut squares, mut weights) = (0.0, 0.0);
        for (time, predicted) in zip(times, predicted) {
            let weight = weight((time - level).max(0.0));
            squares += weight * (time - level - predicted).powi(2);
            weights += weight;
        }
        let scores = learner.rows.rows[start..end].iter().map(|row| row.2);
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        let pick = zip(predicted, times).min_by(|one, other| one.0.total_cmp(other.0));
        compared.push(LeftOutList {
            list,
            configs: times.len(),
            tau: tau(times, predicted),
            score_tau: tau(times, &scores.collect::<Vec<f64>>()),
            squares,
            weights,
            pick: pick.map_or((0.0, 0.0), |(predicted, time)| (*predicted, time - fastest)),
        });
    }
    compared
}

impl Slowdowns {
    /// Learns from first picks.
    pub(super) fn new(lists: &[LeftOutList]) -> Option<Self> {
        if lists.len() < MIN_PICKS {
            return None;
        }
        let picks = lists.iter().map(|list| list.pick);
        let (predicted, slowdowns): (Vec<f64>, Vec<f64>) = picks.clone().unzip();
        let (center, mean) = (mean(&predicted), mean(&slowdowns));
        let (mut covariance, mut variance) = (0.0, 1e-4);
        for (predicted, slowdown) in picks.clone() {
            covariance += (predicted - center) * (slowdown - mean);
            variance += (predicted - center).powi(2);
        }
        let configs: usize = lists.iter().map(|list| list.configs).sum();
        let mut learned = Self {
            mean,
            center,
            rise: (covariance / variance).max(0.0),
            upper: 1.0,
            configs: scalar(configs) / scalar(lists.len()),
        };
        let ratios = picks.map(|(predicted, slowdown)| slowdown / learned.expected(predicted));
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        learned.upper = ratios[ratios.len() * 9 / 10].max(1.0);
        Some(learned)
    }

    /// How far the first pick of some configurations is above the fastest, given what is predicted of it; nothing if they are too many.
    pub(super) fn of_pick(&self, predicted: f64, configs: usize) -> Option<Slowdown> {
        let expected = self.expected(predicted);
        (scalar(configs) <= self.configs * MORE).then(|| Slowdown {
            expected: libm::exp(expected),
            upper: libm::exp(expected * self.upper),
        })
    }

    /// The expected ln(slowdown).
    fn expected(&self, predicted: f64) -> f64 {
        (self.mean + self.rise * (predicted - self.center)).max(1e-3)
    }
}
