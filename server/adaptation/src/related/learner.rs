//! Learns the level of each list, and what predicts times above it.

use std::{borrow::Cow, collections::BTreeMap, iter::zip};

use hlorank_graph::pace;

use super::{
    RelatedList, SourceKind,
    columns::{RelatedRow, RelatedRows},
    rises::Rises,
};
use crate::{
    Prior,
    statistics::{centered, mean},
    trees::{BinnedRows, Examples, Growth, Trees},
};

/// What predicts ln(seconds) above the level of a list.
#[derive(Debug)]
pub(super) enum Fit {
    Rises(Rises),
    Trees(Trees),
}

/// Learns from lists.
pub(super) struct Learner<'a> {
    pub(super) kind: SourceKind,
    pub(super) prior: Prior,
    pub(super) rows: &'a RelatedRows<'a>,
    pub(super) lists: &'a [RelatedList],
    /// `[rows]` ln(seconds), beside what the model explains.
    pub(super) times: Vec<f64>,
    pub(super) binned: BinnedRows,
}

/// Rounds of learning, and of learning a level.
pub(super) const ROUNDS: usize = 300;
pub(super) const ROUNDS_OF_LEVELS: usize = 100;

/// Number of lists from which on they are many: trees are larger.
const MANY: usize = 50;

/// Number of configurations, those that add least to run times, of which the fastest of each list is looked for.
const CANDIDATES: usize = 32;

/// How often levels are learned.
const LEVELS: usize = 2;

/// What a time above the level counts at most, and what one below it.
const CLIP: [f64; 2] = [-0.5, std::f64::consts::LN_2];

/// How fast the weight of a row falls with its slowdown.
const WEIGHT: f64 = 4.0;

/// Weight of a row of another target beside the call's own.
const OTHER_TARGET: f64 = 0.1;

impl<'a> Learner<'a> {
    pub(super) fn new(
        kind: SourceKind,
        prior: Prior,
        rows: &'a RelatedRows<'a>,
        lists: &'a [RelatedList],
    ) -> Self {
        let slope = kind.slope(prior);
        let times = lists
            .iter()
            .map(|list| list.measurements.beside_scores(slope));
        let times: Vec<Vec<f64>> = times.collect();
        let around_means: Vec<f64> = times.iter().cloned().flat_map(centered).collect();
        Self {
            kind,
            prior,
            binned: BinnedRows::new(rows, &around_means),
            rows,
            lists,
            times: times.concat(),
        }
    }

    /// `[lists]` what the fastest configuration of each takes; of kernels and targets the mean, since their whole order counts.
    pub(super) fn levels(&self) -> Vec<f64> {
        if self.kind != SourceKind::Instances {
            let slope = self.kind.slope(self.prior);
            let times = self.lists.iter().map(|list| &list.measurements);
            return times.map(|list| mean(&list.beside_scores(slope))).collect();
        }
        let effects = self.effects();
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
            levels = self.levels_by(&self.known(&Fit::Trees(trees)), by_speed, &least);
        }
        levels
    }

    /// `[distinct configurations]` what each adds to ln(seconds), beside what its list does.
    fn effects(&self) -> Vec<f64> {
        let configs = self.rows.rows.iter().map(|row| row.1 + 1).max();
        let mut effects = vec![0.0; configs.unwrap_or(0)];
        let rows = || zip(&*self.rows.rows, &self.times);
        for _ in 0..10 {
            let mut levels = vec![(0.0, 0.0); self.lists.len()];
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

    /// `[lists]` the least that is predicted of some configurations, whether they were measured or not.
    fn least(&self, trees: &Trees, configs: &[usize]) -> Vec<f64> {
        let rows = self.rows.rows.iter();
        let scores: BTreeMap<usize, f64> = rows.map(|row| (row.1, row.2)).collect();
        let mut least = Vec::with_capacity(self.lists.len());
        for number in pace::in_steps(1, 0..self.lists.len()) {
            let rows = configs.iter();
            let rows: Vec<RelatedRow> = rows
                .map(|&config| (number, config, scores[&config]))
                .collect();
            let predicted = trees.predict(&RelatedRows {
                rows: Cow::Owned(rows),
                lists: Cow::Borrowed(&self.rows.lists),
                parameters: Cow::Borrowed(&self.rows.parameters),
                columns: self.rows.columns,
            });
            least.push(predicted.into_iter().fold(f64::INFINITY, f64::min));
        }
        least
    }

    /// `[lists]` what the fastest configuration takes, given what is predicted of rows and the least that is predicted of each list.
    fn levels_by(&self, predicted: &[f64], weight: impl Fn(f64) -> f64, least: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.lists.len()];
        for ((row, time), &predicted) in zip(zip(&*self.rows.rows, &self.times), predicted) {
            let weight = weight(predicted);
            let (sum, weights) = &mut sums[row.0];
            *sum += weight * (time - predicted);
            *weights += weight;
        }
        let levels = zip(sums, least).map(|((sum, weights), least)| sum / weights + least);
        levels.collect()
    }

    /// `[rows]` what is predicted of what was measured, above the levels.
    pub(super) fn known(&self, fit: &Fit) -> Vec<f64> {
        match fit {
            Fit::Rises(rises) => {
                let points = self.lists.iter().flat_map(|list| &list.measurements.points);
                points.map(|point| rises.predict(point)).collect()
            }
            Fit::Trees(trees) => trees.predict_known(&self.binned, self.times.len()),
        }
    }

    /// Learns ln(seconds) above the levels from some lists.
    pub(super) fn fit(&self, levels: &[f64], rounds: usize, counts: impl Fn(usize) -> bool) -> Fit {
        if self.kind == SourceKind::Kernels {
            let lists = self.lists.iter().enumerate();
            let some = lists.filter(|(number, _)| counts(*number));
            let some = some.map(|(_, list)| &list.measurements);
            return Fit::Rises(Rises::new(self.prior, some));
        }
        Fit::Trees(self.trees(levels, rounds, counts))
    }

    fn trees(&self, levels: &[f64], rounds: usize, counts: impl Fn(usize) -> bool) -> Trees {
        let [least, most] = CLIP;
        let has_own = self.lists.iter().any(|list| list.other_target.is_none());
        let (mut targets, mut weights) = (Vec::new(), Vec::new());
        for (row, time) in zip(&*self.rows.rows, &self.times) {
            let mut above = time - levels[row.0];
            let mut counted = 1.0;
            if self.kind == SourceKind::Instances {
                above = above.clamp(least, most);
                counted = weight(above.max(0.0));
            }
            let of_list = match self.lists[row.0].other_target {
                _ if !counts(row.0) => 0.0,
                Some(_) if has_own => OTHER_TARGET,
                _ => 1.0,
            };
            weights.push(of_list * counted);
            targets.push(above);
        }
        let examples = Examples {
            rows: &self.binned,
            targets: &targets,
            weights: &weights,
        };
        let is_many = self.lists.len() >= MANY;
        let rounds = if is_many { rounds } else { rounds / 2 };
        Trees::new(&examples, Growth::new(rounds, is_many))
    }
}

/// How much a row counts by its ln(slowdown).
pub(super) fn weight(slowdown: f64) -> f64 {
    libm::exp(-WEIGHT * slowdown)
}
