//! What lists that are left out tell of those that nobody measured.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::zip,
};

use super::levels::{InstanceLearner, weight};
use crate::{
    split_mix::{below, mix},
    statistics::{mean, scalar, tau, variance_by_chance},
};

/// What lists that were left out tell.
pub(super) struct Check {
    pub(super) agreement: f64,
    pub(super) is_chance: bool,
    pub(super) spread: f64,
    pub(super) slowdowns: Option<Slowdowns>,
}

/// How far first picks of instances that were left out were above the fastest, by what trees predict of them.
#[derive(Clone, Debug)]
pub(super) struct Slowdowns {
    /// ln(slowdown) where the predictions have their mean, and how much it rises with them.
    pub(super) mean: f64,
    pub(super) center: f64,
    pub(super) rise: f64,
    /// How many times the expected ln(slowdown) nine of ten do not exceed.
    pub(super) upper: f64,
    /// Mean number of measured configurations of the lists.
    configs: f64,
}

/// An expected time over that of the fastest, and what nine of ten do not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slowdown {
    pub(crate) expected: f64,
    pub(crate) upper: f64,
}

/// Lists that were left out.
#[derive(Default)]
struct LeftOut {
    taus: Vec<f64>,
    /// Variance of the sum of taus by chance.
    variance: f64,
    /// Squares of what is left over of the fast rows, and their weights.
    squares: f64,
    weights: f64,
    /// What is predicted of the first pick, and its ln(slowdown).
    picks: Vec<(f64, f64)>,
    /// Number of measured configurations.
    configs: f64,
}

/// Number of instances from which on several are left out at once, in how many parts, and from which on one part is enough.
const LEFT_OUT_BY_ONE: usize = 12;
const PARTS: usize = 4;
const LEFT_OUT_ONCE: usize = 100;

/// Rounds of learning without some lists.
const ROUNDS_OF_CHECK: usize = 200;

/// By how many times a batch may have more configurations than those lists of which the first picks are known: the pick from a few
/// measured ones says little of that from many.
const MORE: usize = 2;

/// How many deviations better than chance instances have to predict each other.
const SURE: f64 = 2.0;

/// Minimum number of first picks that say how far a further one is above the fastest.
const MIN_PICKS: usize = 5;

/// Leaves some lists out, and compares them with what the others say.
pub(super) fn check(learner: &InstanceLearner<'_>, levels: &[f64]) -> Check {
    let own: Vec<usize> = (0..learner.lists.len())
        .filter(|&list| learner.lists[list].other_target.is_none())
        .collect();
    // Lists of other targets are compared if there are no others.
    let compared: Vec<usize> = if own.is_empty() {
        (0..learner.lists.len()).collect()
    } else {
        own
    };
    let (parts, used) = match compared.len() {
        few if few < LEFT_OUT_BY_ONE => (few, few),
        // Each part takes a run, and one of many lists is enough.
        some if some < LEFT_OUT_ONCE => (PARTS, PARTS),
        _ => (PARTS, 1),
    };
    let mut folds = vec![BTreeSet::new(); used];
    for (place, &list) in compared.iter().enumerate() {
        // A draw, because the lists of a target may have an order.
        let part = if parts == PARTS {
            below(mix(list as u64), parts)
        } else {
            place
        };
        if let Some(fold) = folds.get_mut(part) {
            fold.insert(list);
        }
    }
    let mut left_out = LeftOut::default();
    if learner.lists.len() > 1 {
        for fold in folds {
            let trees = learner.trees(levels, ROUNDS_OF_CHECK, |list| !fold.contains(&list));
            left_out.compare(learner, levels, &fold, &learner.known(&trees));
        }
    }
    left_out.check()
}

impl LeftOut {
    fn compare(
        &mut self,
        learner: &InstanceLearner<'_>,
        levels: &[f64],
        fold: &BTreeSet<usize>,
        predicted: &[f64],
    ) {
        let mut by_list = BTreeMap::<usize, Vec<(f64, f64)>>::new();
        for ((&(list, ..), &time), &predicted) in
            zip(zip(&*learner.rows.rows, learner.times), predicted)
        {
            if fold.contains(&list) {
                by_list.entry(list).or_default().push((predicted, time));
            }
        }
        for (list, rows) in by_list {
            let (of_rows, times): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
            if times.len() > 1 {
                self.taus.push(tau(&times, &of_rows));
                self.variance += variance_by_chance(times.len());
            }
            for (predicted, time) in &rows {
                let weight = weight((time - levels[list]).max(0.0));
                self.squares += weight * (time - levels[list] - predicted).powi(2);
                self.weights += weight;
            }
            let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
            self.configs += scalar(rows.len());
            let pick = rows.iter().min_by(|one, other| one.0.total_cmp(&other.0));
            self.picks
                .extend(pick.map(|(predicted, time)| (*predicted, time - fastest)));
        }
    }

    fn check(&self) -> Check {
        let lists = scalar(self.taus.len());
        let agreement = if self.taus.is_empty() {
            0.0
        } else {
            mean(&self.taus)
        };
        Check {
            agreement,
            is_chance: !self.taus.is_empty() && agreement * lists <= SURE * self.variance.sqrt(),
            spread: if self.weights > 0.0 {
                (self.squares / self.weights).sqrt()
            } else {
                0.3
            },
            slowdowns: Slowdowns::new(&self.picks, self.configs),
        }
    }
}

impl Slowdowns {
    /// Learns from predictions of first picks and their ln(slowdown).
    fn new(picks: &[(f64, f64)], configs: f64) -> Option<Self> {
        if picks.len() < MIN_PICKS {
            return None;
        }
        let (predicted, true_ones): (Vec<f64>, Vec<f64>) = picks.iter().copied().unzip();
        let (center, mean) = (mean(&predicted), mean(&true_ones));
        let (mut covariance, mut variance) = (0.0, 1e-4);
        for (predicted, slowdown) in picks {
            covariance += (predicted - center) * (slowdown - mean);
            variance += (predicted - center).powi(2);
        }
        let mut slowdowns = Self {
            mean,
            center,
            rise: (covariance / variance).max(0.0),
            upper: 1.0,
            configs: configs / scalar(picks.len()),
        };
        let mut ratios: Vec<f64> = picks
            .iter()
            .map(|(predicted, slowdown)| slowdown / slowdowns.expected(*predicted))
            .collect();
        ratios.sort_by(f64::total_cmp);
        slowdowns.upper = ratios[ratios.len() * 9 / 10].max(1.0);
        Some(slowdowns)
    }

    /// Whether they say something of a batch of this many configurations.
    pub(super) fn hold_for(&self, configs: usize) -> bool {
        scalar(configs) <= self.configs * scalar(MORE)
    }

    /// The expected ln(slowdown).
    pub(super) fn expected(&self, predicted: f64) -> f64 {
        (self.mean + self.rise * (predicted - self.center)).max(1e-3)
    }
}
