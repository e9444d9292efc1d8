//! What related lists of measurements say of run times, up to a common number, before or beside measurements of the list itself:
//! kernels of one structure on the target, and the same graph on other targets.
//!
//! Times of different lists are never mixed, because every list has a level of its own: they count around their mean. What they
//! teach takes the place of the model's scores, and the target's own measurements tell the difference. Related lists are believed
//! as far as they predict each other, which shows when each is left out in turn: kernels all together, since only their rises are
//! common; targets one by one, and as long as the target's own measurements do not contradict them. Kernels have few measurements
//! and new bounds, which a linear regression continues; boosted trees learn more from the same configurations on other targets.

use std::{collections::BTreeMap, iter, sync::Arc};

use hlorank_graph::{InstanceFeatures, pace};
use parking_lot::Mutex;

use super::{
    Measurements, Point, Prior,
    instances::{InstanceModel, Slowdown},
    linear_algebra::{Factor, add_scaled, dot},
    related_basis::{Refusal, RelatedBasis},
    trees::{BinnedRows, Examples, Growth, Trees},
};
use crate::statistics::{centered, deviation, mean, scalar, tau, variance_by_chance};

/// What is expected of ln(seconds), up to a common number, in place of the model's scores.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    /// How much ln(seconds) rises per unit of the model's score.
    slope: f64,
    rest: ResidualModel,
    /// What is expected of run times if it has taken the place of scores.
    pub(crate) prior: Prior,
}

/// What related lists are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceKind {
    Instances,
    Kernels,
    Targets,
}

/// What is expected beside a line in the score.
#[derive(Clone, Debug)]
enum ResidualModel {
    /// What each bound of a tile adds per unit, from other kernels.
    Bounds(Arc<[f64]>),
    /// From other targets.
    Trees(Arc<Trees>),
    /// From other instances, of one with these features.
    Instances(Arc<InstanceModel>, Arc<InstanceFeatures>),
}

/// Measurements of a graph on other targets, and what each of them says alone.
pub(crate) struct StudiedTargets {
    prior: Prior,
    targets: Vec<StudiedTarget>,
    /// What they say together, by which of them are used.
    together: Mutex<BTreeMap<Vec<bool>, Expectation>>,
}

struct StudiedTarget {
    /// None if they are too few.
    examples: TargetExamples,
    basis: RelatedBasis,
    /// What it says alone.
    trees: Trees,
    /// Deviation of its times from what the others say; from their mean if there are no others.
    spread: f64,
}

/// The measurements of a target.
#[derive(Clone, Debug, Default)]
struct TargetExamples {
    points: Vec<Point>,
    /// `[points]` what the model does not explain of ln(seconds), around its mean.
    targets: Vec<f64>,
}

/// The measurements of a kernel, around their means.
struct CenteredTimes {
    /// `[measured]` the score and the bounds, in their units.
    rows: Vec<Vec<f64>>,
    times: Vec<f64>,
    scores: Vec<f64>,
}

/// The unit of logarithms of bounds, which is about twice their deviation in lists of tiles.
const BOUNDS_UNIT: f64 = 2.2;

/// Deviation of ln(seconds) of kernels from what score and bounds explain, which counts as noise.
const NOISE: f64 = 0.2;

/// Deviation of what a unit adds, from what is expected before anything is measured.
const RISE: f64 = 0.3;

/// By how much other kernels have to predict better than the model.
const GAIN: f64 = 0.03;

/// How many deviations better than chance other kernels have to predict, since the model may be no better than that; and targets.
const SURE_OF_KERNELS: f64 = 3.0;
const SURE_OF_TARGETS: f64 = 2.0;

/// Minimum number of kernels, and of measured configurations of one.
const MIN_KERNELS: usize = 2;
const MIN_MEASURED: usize = 3;

/// Rounds of learning from all targets, and from some of them to compare them.
const ROUNDS: usize = 200;
const ROUNDS_TO_COMPARE: usize = 60;

/// Minimum number of times of another target, and of the target's own that it is compared with.
const ENOUGH: usize = 5;

/// Number of the target's own times from which on another target has to agree with them, by this many deviations of chance: it then
/// teaches nothing that they do not.
const MANY: usize = 20;
const AGREES_NOT: f64 = 0.5;

/// Bounds of the deviation of ln(seconds) on a further target.
const SPREAD: [f64; 2] = [0.05, 2.0];

impl Expectation {
    /// Learns from the measurements of other kernels. Returns nothing if they predict each other no better than the model does.
    pub(crate) fn of_kernels(
        prior: Prior,
        kernels: &[Measurements],
    ) -> (Option<Self>, RelatedBasis) {
        let enough = kernels
            .iter()
            .filter(|each| each.measured() >= MIN_MEASURED);
        let kernels: Vec<CenteredTimes> =
            enough.map(|each| CenteredTimes::new(prior, each)).collect();
        let mut basis = RelatedBasis {
            lists: kernels.len(),
            measured: kernels.iter().map(|kernel| kernel.times.len()).sum(),
            refusal: Some(Refusal::TooFew),
            ..RelatedBasis::default()
        };
        if kernels.len() < MIN_KERNELS {
            return (None, basis);
        }
        let share = |value: f64| value / scalar(kernels.len());
        let mut variance = 0.0;
        for (number, left_out) in kernels.iter().enumerate() {
            let (before, from) = kernels.split_at(number);
            let rises = rises(prior, before.iter().chain(&from[1..]));
            let predicted: Vec<f64> = left_out.rows.iter().map(|row| dot(row, &rises)).collect();
            let times = &left_out.times;
            basis.agreement += share(tau(times, &predicted));
            basis.score_tau += share(tau(times, &left_out.scores));
            // The variance of a share falls with its square.
            variance += share(share(variance_by_chance(times.len())));
        }
        // Chance comes first: kernels may beat a model that is worse than random.
        basis.refusal = match basis.agreement {
            tau if tau <= SURE_OF_KERNELS * variance.sqrt() => Some(Refusal::NoBetterThanChance),
            tau if tau <= basis.score_tau + GAIN => Some(Refusal::NoBetterThanModel),
            _ => None,
        };
        let learned = basis.refusal.is_none().then(|| {
            let rises = rises(prior, kernels.iter());
            Self {
                slope: rises[0] / (prior.spread / prior.slope),
                rest: ResidualModel::Bounds(
                    rises[1..].iter().map(|rise| rise / BOUNDS_UNIT).collect(),
                ),
                prior: Prior {
                    slope: 1.0,
                    ..prior
                },
            }
        });
        (learned, basis)
    }

    /// What other instances say of one with these features. The score is a column of theirs.
    pub(crate) fn of_instances(model: Arc<InstanceModel>, features: Arc<InstanceFeatures>) -> Self {
        Self {
            slope: 0.0,
            prior: Prior {
                slope: 1.0,
                spread: model.spread,
                doubt: 0.0,
            },
            rest: ResidualModel::Instances(model, features),
        }
    }

    /// What it is from.
    pub(crate) fn kind(&self) -> SourceKind {
        match self.rest {
            ResidualModel::Bounds(_) => SourceKind::Kernels,
            ResidualModel::Trees(_) => SourceKind::Targets,
            ResidualModel::Instances(..) => SourceKind::Instances,
        }
    }

    /// Whether enough instances are known to measure what they predict to be fastest, whatever is uncertain.
    pub(crate) fn is_followed(&self) -> bool {
        matches!(&self.rest, ResidualModel::Instances(model, _) if model.is_followed())
    }

    /// Texts of the instance that no measured one has, with the names of their features.
    pub(crate) fn unknown_values(&self) -> Vec<(String, String)> {
        match &self.rest {
            ResidualModel::Instances(model, features) => model.unknown_values(features),
            ResidualModel::Bounds(_) | ResidualModel::Trees(_) => Vec::new(),
        }
    }

    /// How far a first pick is expected to be above the fastest, given what is expected of it; nothing if no instances say it.
    pub(crate) fn slowdown(&self, expected: f64, configs: usize) -> Option<Slowdown> {
        match &self.rest {
            ResidualModel::Instances(model, _) => model.slowdown(expected, configs),
            ResidualModel::Bounds(_) | ResidualModel::Trees(_) => None,
        }
    }

    /// Takes the place of the scores of points.
    pub(crate) fn replace_scores(&self, points: &mut [Point]) {
        let rest: Vec<f64> = match &self.rest {
            ResidualModel::Bounds(rises) => {
                let points = pace::in_steps(8, &*points);
                points.map(|point| dot(rises, &point.bounds)).collect()
            }
            ResidualModel::Trees(trees) => trees.predict(&*points),
            ResidualModel::Instances(model, features) => model.predict(features, points),
        };
        for (point, rest) in points.iter_mut().zip(rest) {
            point.score = self.slope * point.score + rest;
        }
    }
}

impl CenteredTimes {
    fn new(prior: Prior, measurements: &Measurements) -> Self {
        let points = &measurements.points;
        let rows = points.iter().map(|point| {
            let score = point.score / (prior.spread / prior.slope);
            let bounds = point.bounds.iter().map(|bound| bound / BOUNDS_UNIT);
            iter::once(score).chain(bounds).collect()
        });
        let mut rows: Vec<Vec<f64>> = rows.collect();
        for place in 0..rows[0].len() {
            let column: Vec<f64> = rows.iter().map(|row| row[place]).collect();
            let center = mean(&column);
            for row in &mut rows {
                row[place] -= center;
            }
        }
        Self {
            rows,
            times: centered(measurements.times.clone()),
            scores: points.iter().map(|point| point.score).collect(),
        }
    }
}

/// What a unit of the score and of each bound adds: a Bayesian linear regression, in which the score is expected to add the
/// spread, and the bounds nothing. It solves `(XᵀX + λI)·b = Xᵀy`.
fn rises<'a>(prior: Prior, kernels: impl Iterator<Item = &'a CenteredTimes>) -> Vec<f64> {
    let (mut products, mut sums) = (Vec::new(), Vec::new());
    for kernel in kernels {
        for (row, time) in kernel.rows.iter().zip(&kernel.times) {
            products.resize(row.len() * row.len(), 0.0);
            sums.resize(row.len(), 0.0);
            // What the score is expected to add is taken from the times, and added to the result.
            add_scaled(&mut sums, row, time - prior.spread * row[0]);
            for (products, &own) in products.chunks_exact_mut(row.len()).zip(row) {
                add_scaled(products, row, own);
            }
        }
    }
    let size = sums.len();
    for place in 0..size {
        products[place * size + place] += NOISE * NOISE / (RISE * RISE);
    }
    let mut rises = Factor::new(products, size).solve(&sums);
    rises[0] += prior.spread;
    rises
}

impl StudiedTargets {
    /// Compares targets with each other.
    pub(crate) fn new(prior: Prior, targets: &[Measurements]) -> Self {
        // What the model does not explain of each target's times, around its mean. A failure counts as slow.
        let examples = targets.iter().map(|target| {
            if target.measured() < ENOUGH || !target.teach() {
                return TargetExamples::default();
            }
            let slow = target.clone().with_failures_slow();
            TargetExamples {
                targets: centered(slow.beside_scores(prior.slope)),
                points: slow.points,
            }
        });
        let examples: Vec<TargetExamples> = examples.collect();
        let studied = targets.iter().enumerate().map(|(number, target)| {
            let (before, from) = examples.split_at(number);
            let others = joined(before.iter().chain(&from[1..]));
            StudiedTarget::new(target.distinct(), examples[number].clone(), &others)
        });
        Self {
            prior,
            targets: studied.collect(),
            together: Mutex::default(),
        }
    }

    /// Returns what the targets say that neither the others nor the target's own measurements speak against, and what became of
    /// each.
    pub(crate) fn given(&self, own: &Measurements) -> (Option<Expectation>, Vec<RelatedBasis>) {
        let bases: Vec<RelatedBasis> = self.targets.iter().map(|each| each.given(own)).collect();
        let used: Vec<bool> = bases.iter().map(|basis| basis.refusal.is_none()).collect();
        if !used.contains(&true) {
            return (None, bases);
        }
        if let Some(known) = self.together.lock().get(&used) {
            return (Some(known.clone()), bases);
        }
        // The lock is not held while trees learn, which pauses. Calls that learn the same learn
        // equal trees, so that it does not matter whose are kept.
        let believed = self.targets.iter().zip(&used).filter(|(_, used)| **used);
        let believed: Vec<&StudiedTarget> = believed.map(|(target, _)| target).collect();
        let examples = joined(believed.iter().map(|target| &target.examples));
        let spreads: Vec<f64> = believed.iter().map(|target| target.spread).collect();
        let [least, most] = SPREAD;
        let expectation = Expectation {
            slope: self.prior.slope,
            rest: ResidualModel::Trees(Arc::new(examples.teach(ROUNDS))),
            prior: Prior {
                slope: 1.0,
                spread: mean(&spreads).clamp(least, most),
                // Targets that say nothing are refused. If they could be doubted here, too, then suggestions would go where they
                // are most extreme, and find less.
                doubt: 0.0,
            },
        };
        self.together.lock().insert(used, expectation.clone());
        (Some(expectation), bases)
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let of_target = |target: &StudiedTarget| {
            let TargetExamples { points, targets } = &target.examples;
            Point::bytes(points) + size_of_val(&**targets) + target.trees.bytes()
        };
        // What some of them say together takes about what each says alone.
        2 * self.targets.iter().map(of_target).sum::<usize>()
    }
}

impl StudiedTarget {
    fn new(measured: usize, examples: TargetExamples, others: &TargetExamples) -> Self {
        let mut basis = RelatedBasis {
            lists: 1,
            measured,
            ..RelatedBasis::default()
        };
        let mut rounds = ROUNDS_TO_COMPARE;
        let mut left = examples.targets.clone();
        if left.is_empty() {
            basis.refusal = Some(Refusal::TooFew);
            rounds = 0;
        } else if !others.targets.is_empty() {
            // A single target has no other to be compared with, and is believed until measurements of the target contradict it.
            let predicted = others
                .teach(ROUNDS_TO_COMPARE)
                .predict(examples.points.as_slice());
            basis.agreement = tau(&left, &predicted);
            let sure = from_chance(basis.agreement, left.len()) > SURE_OF_TARGETS;
            basis.refusal = (!sure).then_some(Refusal::NoBetterThanChance);
            add_scaled(&mut left, &predicted, -1.0);
        }
        Self {
            basis,
            trees: examples.teach(rounds),
            examples,
            spread: deviation(&left),
        }
    }

    /// What it says, given the target's own measurements.
    fn given(&self, own: &Measurements) -> RelatedBasis {
        if self.basis.refusal.is_some() || own.measured() < ENOUGH {
            return self.basis;
        }
        // Whole times, though its trees predict what the model does not explain of them: many own
        // measurements teach more than a target that adds little to the model, which so is refused.
        let agreement = tau(&own.times, &self.trees.predict(own.points.as_slice()));
        let deviations = from_chance(agreement, own.measured());
        // Few times contradict by a reversed order alone, many by an order that is unlike.
        let contradicts =
            deviations < -SURE_OF_TARGETS || (own.measured() >= MANY && deviations < AGREES_NOT);
        RelatedBasis {
            agreement,
            refusal: contradicts.then_some(Refusal::Contradicted),
            ..self.basis
        }
    }
}

/// How many standard deviations of chance a tau of this many times is from 0.
fn from_chance(tau: f64, measured: usize) -> f64 {
    tau / variance_by_chance(measured).sqrt()
}

impl TargetExamples {
    fn teach(&self, rounds: usize) -> Trees {
        let examples = Examples {
            rows: &BinnedRows::new(self.points.as_slice(), &self.targets),
            targets: &self.targets,
            weights: None,
        };
        Trees::new(&examples, Growth::new(rounds, false))
    }
}

fn joined<'a>(examples: impl Iterator<Item = &'a TargetExamples> + Clone) -> TargetExamples {
    TargetExamples {
        points: examples
            .clone()
            .flat_map(|each| each.points.clone())
            .collect(),
        targets: examples.flat_map(|each| each.targets.clone()).collect(),
    }
}

#[cfg(test)]
mod tests;
