//! Learns the level of each list, and trees of what is above it.

use std::{borrow::Cow, collections::BTreeMap, iter::zip};

use hlorank_graph::pace;

use super::{columns::InstanceRows, measured_instance::MeasuredInstance};
use crate::{
    adaptation::trees::{BinnedRows, Examples, Growth, Trees},
    statistics::centered,
};

/// Learns from lists.
pub(super) struct InstanceLearner<'a> {
    pub(super) rows: &'a InstanceRows<'a>,
    pub(super) lists: &'a [MeasuredInstance],
    /// `[rows]` ln(seconds).
    pub(super) times: &'a [f64],
    pub(super) is_many: bool,
    /// `[distinct configurations]` what each adds to ln(seconds), beside what its list does.
    effects: Vec<f64>,
    pub(super) binned: BinnedRows,
}

/// Rounds of learning, and of learning a level.
pub(super) const ROUNDS: usize = 300;
pub(super) const ROUNDS_OF_LEVELS: usize = 100;

/// Number of configurations, those that add least to run times, of which the fastest of each list is looked for.
const CANDIDATES: usize = 32;

/// How often levels are learned.
const LEVELS: usize = 2;

/// What a time above the level counts at most, and what one below it.
const CLIP: [f64; 2] = [-0.5, std::f64::consts::LN_2];

/// How fast the weight of a row falls with its slowdown.
const WEIGHT: f64 = 4.0;

/// Weight of a row of another target.
const OTHER_TARGET: f64 = 0.1;

impl<'a> InstanceLearner<'a> {
    pub(super) fn new(
        rows: &'a InstanceRows<'a>,
        lists: &'a [MeasuredInstance],
        times: &'a [f64],
        is_many: bool,
    ) -> Self {
        let effects = effects(rows, times);
        let around_means = lists
            .iter()
            .flat_map(|list| centered(list.measurements.times.clone()));
        Self {
            binned: BinnedRows::new(rows, &around_means.collect::<Vec<_>>()),
            rows,
            lists,
            times,
            is_many,
            effects,
        }
    }

    /// `[lists]` what the fastest configuration of each takes.
    pub(super) fn levels(&self) -> Vec<f64> {
        let effects = &self.effects;
        let mut best: Vec<usize> = (0..effects.len()).collect();
        best.sort_by(|&one, &other| effects[one].total_cmp(&effects[other]));
        best.truncate(CANDIDATES);
        let least = best.first().map_or(0.0, |&config| effects[config]);
        let rows = self.rows.rows.iter();
        let of_effects: Vec<f64> = rows.map(|&(_, config, _)| effects[config]).collect();
        let mut levels = self.levels_by(&of_effects, |_| 1.0, &vec![least; self.lists.len()]);
        for _ in 0..LEVELS {
            let trees = self.trees(&levels, ROUNDS_OF_LEVELS, |_| true);
            let least = self.least(&trees, &best);
            let by_speed = |predicted: f64| weight(predicted.clamp(0.0, 3.0));
            levels = self.levels_by(&self.known(&trees), by_speed, &least);
        }
        levels
    }

    /// `[lists]` the least that is predicted of some configurations, whether they were measured or not.
    fn least(&self, trees: &Trees, configs: &[usize]) -> Vec<f64> {
        let scores: BTreeMap<usize, f64> = self
            .rows
            .rows
            .iter()
            .map(|&(_, config, score)| (config, score))
            .collect();
        let mut least = Vec::with_capacity(self.lists.len());
        for number in pace::in_steps(1, 0..self.lists.len()) {
            let rows = configs
                .iter()
                .map(|&config| (number, config, scores[&config]));
            let predicted = trees.predict(&InstanceRows {
                rows: Cow::Owned(rows.collect()),
                lists: Cow::Borrowed(&self.rows.lists),
                parameters: Cow::Borrowed(&self.rows.parameters),
                columns: self.rows.columns,
            });
            least.push(predicted.into_iter().fold(f64::INFINITY, f64::min));
        }
        least
    }

    /// `[rows]` what is predicted of what was measured.
    pub(super) fn known(&self, trees: &Trees) -> Vec<f64> {
        trees.predict_known(&self.binned, self.times.len())
    }

    /// `[lists]` what the fastest configuration takes, given what is predicted of rows and the least that is predicted of each list.
    fn levels_by(&self, predicted: &[f64], weight: impl Fn(f64) -> f64, least: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.lists.len()];
        for ((&(list, ..), time), &predicted) in zip(zip(&*self.rows.rows, self.times), predicted) {
            let weight = weight(predicted);
            sums[list].0 += weight * (time - predicted);
            sums[list].1 += weight;
        }
        zip(sums, least)
            .map(|((sum, weights), least)| sum / weights + least)
            .collect()
    }

    /// Trees of ln(seconds) above the levels, of some lists.
    pub(super) fn trees(
        &self,
        levels: &[f64],
        rounds: usize,
        counts: impl Fn(usize) -> bool,
    ) -> Trees {
        let [least, most] = CLIP;
        let above = zip(&*self.rows.rows, self.times)
            .map(|(row, time)| (time - levels[row.0]).clamp(least, most));
        let targets: Vec<f64> = above.collect();
        let weights: Vec<f64> = zip(&*self.rows.rows, &targets)
            .map(|(&(list, ..), &target)| {
                let of_target = if self.lists[list].other_target.is_some() {
                    OTHER_TARGET
                } else {
                    1.0
                };
                if counts(list) {
                    of_target * weight(target.max(0.0))
                } else {
                    0.0
                }
            })
            .collect();
        let examples = Examples {
            rows: &self.binned,
            targets: &targets,
            weights: Some(&weights),
        };
        let rounds = if self.is_many { rounds } else { rounds / 2 };
        Trees::new(&examples, Growth::new(rounds, self.is_many))
    }
}

/// `[distinct configurations]` what each adds to ln(seconds), beside what its list does.
fn effects(rows: &InstanceRows<'_>, times: &[f64]) -> Vec<f64> {
    let configs = rows.rows.iter().map(|row| row.1 + 1).max();
    let mut effects = vec![0.0; configs.unwrap_or(0)];
    let rows = || zip(&*rows.rows, times);
    let lists = rows().map(|(row, _)| row.0 + 1).max().unwrap_or(0);
    for _ in 0..10 {
        let mut levels = vec![(0.0, 0.0); lists];
        for (&(list, config, _), time) in rows() {
            levels[list].0 += time - effects[config];
            levels[list].1 += 1.0;
        }
        // A configuration that was measured once says less than one that was measured in many lists.
        let mut sums = vec![(0.0, 1.0); effects.len()];
        for (&(list, config, _), time) in rows() {
            sums[config].0 += time - levels[list].0 / levels[list].1;
            sums[config].1 += 1.0;
        }
        effects = sums.into_iter().map(|(sum, count)| sum / count).collect();
    }
    effects
}

/// How much a row counts by its ln(slowdown).
pub(super) fn weight(slowdown: f64) -> f64 {
    libm::exp(-WEIGHT * slowdown)
}
