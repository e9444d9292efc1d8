//! What related lists of measurements say of run times, up to a common number, before or beside measurements of the list itself:
//! other instances of a set, the same graph on other targets, and kernels of one structure.
//!
//! Times of different lists are never mixed, because every list has a level of its own: what its fastest configuration takes. The
//! level is learned, because the fastest of a few measured configurations is seldom the fastest of all. Boosted trees learn
//! ln(seconds) above the level, clipped, and slow rows count little. Their columns are features of the instance, parameters of the
//! configuration, and what sizes and tiles say together. Kernels have few measurements and new bounds, so that they have a line in
//! place of trees. Lists are left out in turn: how well the others predict them says whether they are believed, and how far a first
//! pick is expected to be above the fastest. Other targets are believed one by one, and as long as the graph's own measurements
//! do not contradict them.

mod basis;
mod columns;
mod learner;
mod left_out;
mod list;
mod rises;

use std::{mem::take, sync::Arc};

use hlorank_graph::InstanceFeatures;

use super::{
    Measurements, Point, Prior,
    trees::{Examples, Growth, Trees},
};
use crate::statistics::{mean, scalar, tau, variance_by_chance};
use columns::{Columns, RelatedRows};
use learner::{Fit, Learner, ROUNDS, ROUNDS_OF_LEVELS};
use left_out::{LeftOutList, Slowdowns, left_out};
use list::ENOUGH;

pub use basis::{Refusal, RelatedBasis, SourceKind};
pub use columns::MAX_PARAMETERS;
pub use left_out::Slowdown;
pub use list::RelatedList;

/// What related lists taught.
#[derive(Debug)]
pub struct RelatedModel {
    /// What the lists are of.
    pub kind: SourceKind,
    columns: Columns,
    /// How much ln(seconds) rises per unit of the model's score, beside what the fit says.
    slope: f64,
    fit: Fit,
    /// Predicts which configurations fail; `None` if few did.
    failures: Option<Trees>,
    slowdowns: Option<Slowdowns>,
    /// What is expected of run times if it takes the place of scores.
    prior: Prior,
    /// Number of lists on the call's own target.
    own: usize,
}

/// What related lists taught, if they say something, and what becomes of each source.
pub type TaughtByLists = (Option<Arc<RelatedModel>>, Vec<RelatedBasis>);

/// What is expected of ln(seconds), up to a common number, in place of the model's scores.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// What predicts it.
    pub model: Arc<RelatedModel>,
    /// The features of the instance for which it is expected.
    pub features: Arc<InstanceFeatures>,
}

/// Minimum number of kernels.
const MIN_KERNELS: usize = 2;

/// How many deviations better than chance lists have to predict each other; kernels more, since the model may be no better than chance.
const SURE: f64 = 2.0;
const SURE_OF_KERNELS: f64 = 3.0;

/// By how much other kernels have to predict better than the model.
const GAIN: f64 = 0.03;

/// Number of the target's own times from which on another target has to agree with them, by this many deviations of chance: it then
/// teaches nothing that they do not.
const MANY: usize = 20;
const AGREES_NOT: f64 = 0.5;

/// Number of instances from which on what they say is followed without a doubt.
const FOLLOWED: usize = 20;

/// Number of instances from which on failures are predicted, and how sure of a failure is enough.
const FAILURES_FROM: usize = 100;
const SURE_OF_FAILURE: f64 = 0.7;

/// What a predicted failure adds to ln(seconds).
const FAILURE: f64 = 7.0;

/// Number of the target's own instances from which on those of other targets do not count.
const OWN_ALONE: usize = 200;

/// Bounds of the deviation of a list from what others say, and what it is if there are no others.
const SPREAD: [f64; 2] = [0.05, 2.0];
const SPREAD_OF_ONE: f64 = 0.3;

/// Returns what related lists say that the graph's own measurements do not contradict, and what became of each source. `learn` is
/// [`RelatedModel::learn`], or remembers what it taught.
pub fn relate(
    kind: SourceKind,
    mut lists: Vec<RelatedList>,
    own: &Measurements,
    learn: impl Fn(&[RelatedList]) -> TaughtByLists,
) -> TaughtByLists {
    let (mut model, mut bases) = learn(&lists);
    let learned = model.as_ref();
    if learned.is_some_and(|model| model.refuse_contradicted(own, &mut bases)) {
        lists.retain(|list| bases[list.source(kind)].refusal.is_none());
        let (rest, bases_of_rest) = learn(&lists);
        model = rest;
        // Without the contradicted ones, another may be unlike all that are left.
        for (basis, of_rest) in bases.iter_mut().zip(bases_of_rest) {
            basis.refusal = basis.refusal.or(of_rest.refusal);
        }
    }
    (model, bases)
}

impl RelatedModel {
    /// Learns from lists in the order of the store, in which the same lists teach the same.
    pub fn learn(kind: SourceKind, prior: Prior, mut lists: Vec<RelatedList>) -> TaughtByLists {
        let is_own = |list: &RelatedList| list.other_target.is_none();
        let own = |lists: &[RelatedList]| lists.iter().filter(|list| is_own(list)).count();
        if own(&lists) >= OWN_ALONE {
            lists.retain(is_own);
        }
        let sources = lists.iter().map(|list| list.source(kind) + 1).max();
        // All instances are a source, and all kernels, even if there are none.
        let least = usize::from(kind != SourceKind::Targets);
        let too_few = RelatedBasis {
            refusal: Some(Refusal::TooFew),
            ..RelatedBasis::default()
        };
        let mut bases = vec![too_few; sources.unwrap_or(least)];
        for list in &lists {
            let source = &mut bases[list.source(kind)];
            source.measured += list.measurements.distinct();
            source.lists += usize::from(list.is_enough(kind));
        }
        lists.retain(|list| list.is_enough(kind));
        let teach = match kind {
            SourceKind::Instances => {
                let mut lists = lists.iter();
                bases[0].measured >= ENOUGH && lists.any(|list| list.measurements.teach())
            }
            SourceKind::Kernels => lists.len() >= MIN_KERNELS,
            SourceKind::Targets => !lists.is_empty(),
        };
        if !teach {
            return (None, bases);
        }
        let own = own(&lists);
        let is_failed: Vec<f64> = lists
            .iter()
            .flat_map(|list| {
                let timed = list.measurements.times.iter().map(|_| 0.0);
                timed.chain(list.measurements.failed.iter().map(|_| 1.0))
            })
            .collect();
        // A failure counts as slow.
        for list in &mut lists {
            list.measurements = take(&mut list.measurements).with_failures_slow();
        }
        let columns = Columns::new(&lists);
        let rows = RelatedRows::of_lists(&columns, &lists);
        let learner = Learner::new(kind, prior, &rows, &lists);
        let levels = learner.levels();
        let left_out = left_out(&learner, &levels);
        let source = |list: usize| lists[list].source(kind);
        let judged = bases.iter_mut().enumerate();
        for (number, basis) in judged.filter(|(_, basis)| basis.lists > 0) {
            let of_source = left_out.iter().filter(|left| source(left.list) == number);
            basis.judge(kind, of_source);
        }
        let is_used = |list: usize| bases[source(list)].refusal.is_none();
        if !(0..lists.len()).any(is_used) {
            return (None, bases);
        }
        let fit = learner.fit(&levels, ROUNDS, is_used);
        let failures = (own >= FAILURES_FROM && is_failed.contains(&1.0)).then(|| {
            let examples = Examples {
                rows: &learner.binned,
                targets: &is_failed,
                weights: &vec![1.0; is_failed.len()],
            };
            Trees::new(&examples, Growth::new(ROUNDS_OF_LEVELS, true))
        });
        let prior = match kind {
            SourceKind::Kernels => prior,
            SourceKind::Instances | SourceKind::Targets => Prior {
                spread: spread(left_out.iter().filter(|left| is_used(left.list))),
                // Lists that say nothing are refused. If the others could be doubted, too, then suggestions would go where they
                // are most extreme, and find less.
                doubt: 0.0,
                ..prior
            },
        };
        let model = Self {
            kind,
            slope: kind.slope(prior),
            fit,
            failures,
            slowdowns: Slowdowns::new(&left_out).filter(|_| kind == SourceKind::Instances),
            prior: Prior {
                slope: 1.0,
                ..prior
            },
            own,
            columns,
        };
        (Some(Arc::new(model)), bases)
    }

    /// Refuses other targets that the measurements of the graph itself contradict. Returns whether there are some.
    fn refuse_contradicted(&self, own: &Measurements, bases: &mut [RelatedBasis]) -> bool {
        let mut is_contradicted = false;
        if self.kind != SourceKind::Targets || own.measured() < ENOUGH {
            return is_contradicted;
        }
        let used = bases.iter_mut().enumerate();
        for (target, basis) in used.filter(|(_, basis)| basis.refusal.is_none()) {
            // Whole times, and what the target adds to the model: many own measurements teach more than one that adds little.
            let rest = self.rest(&InstanceFeatures::default(), Some(target), &own.points);
            basis.agreement = tau(&own.times, &rest);
            let deviations = basis.agreement / variance_by_chance(own.measured()).sqrt();
            // Few times contradict by a reversed order alone, many by an order that is unlike.
            let contradicts =
                deviations < -SURE || (own.measured() >= MANY && deviations < AGREES_NOT);
            basis.refusal = contradicts.then_some(Refusal::Contradicted);
            is_contradicted |= contradicts;
        }
        is_contradicted
    }

    /// `[points]` ln(seconds) of an instance on the call's own target or another one, beside what the model explains.
    fn rest(
        &self,
        features: &InstanceFeatures,
        other_target: Option<usize>,
        points: &[Point],
    ) -> Vec<f64> {
        let rows = RelatedRows::of_points(&self.columns, features, other_target, points);
        let mut predicted = match &self.fit {
            Fit::Rises(rises) => points.iter().map(|point| rises.predict(point)).collect(),
            Fit::Trees(trees) => trees.predict(&rows),
        };
        if let Some(failures) = &self.failures {
            for (time, failure) in predicted.iter_mut().zip(failures.predict(&rows)) {
                if failure > SURE_OF_FAILURE {
                    *time += FAILURE;
                }
            }
        }
        predicted
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let trees = match &self.fit {
            Fit::Rises(_) => None,
            Fit::Trees(trees) => Some(trees),
        };
        let trees = trees.into_iter().chain(&self.failures).map(Trees::bytes);
        self.columns.bytes() + trees.sum::<usize>()
    }
}

impl RelatedBasis {
    /// Compares its lists with what others say of them.
    fn judge<'a>(&mut self, kind: SourceKind, lists: impl Iterator<Item = &'a LeftOutList>) {
        self.refusal = None;
        // A list with one time has no order.
        let lists: Vec<&LeftOutList> = lists.filter(|list| list.configs > 1).collect();
        if lists.is_empty() {
            // A single list has no other to be compared with, and is believed until measurements contradict it.
            return;
        }
        let taus: Vec<f64> = lists.iter().map(|list| list.tau).collect();
        let variances = lists.iter().map(|list| variance_by_chance(list.configs));
        let chance = variances.sum::<f64>().sqrt() / scalar(lists.len());
        self.agreement = mean(&taus);
        let mut sure = SURE;
        if kind == SourceKind::Kernels {
            let taus: Vec<f64> = lists.iter().map(|list| list.score_tau).collect();
            self.score_tau = mean(&taus);
            sure = SURE_OF_KERNELS;
        }
        // Chance comes first: kernels may beat a model that is worse than random.
        if self.agreement <= sure * chance {
            self.refusal = Some(Refusal::NoBetterThanChance);
        } else if kind == SourceKind::Kernels && self.agreement <= self.score_tau + GAIN {
            self.refusal = Some(Refusal::NoBetterThanModel);
        }
    }
}

/// The deviation of lists from what others say of them.
fn spread<'a>(lists: impl Iterator<Item = &'a LeftOutList>) -> f64 {
    let (mut squares, mut weights) = (0.0, 0.0);
    for list in lists {
        squares += list.squares;
        weights += list.weights;
    }
    let [least, most] = SPREAD;
    if weights > 0.0 {
        libm::sqrt(squares / weights).clamp(least, most)
    } else {
        SPREAD_OF_ONE
    }
}

impl Expectation {
    /// What is expected of run times if it has taken the place of scores.
    pub fn prior(&self) -> Prior {
        self.model.prior
    }

    /// Whether enough instances are known to measure what they predict to be fastest, whatever is uncertain.
    pub fn is_followed(&self) -> bool {
        self.model.kind == SourceKind::Instances && self.model.own >= FOLLOWED
    }

    /// Texts of the instance that no measured one has, with the names of their features.
    pub fn unknown_values(&self) -> Vec<(String, String)> {
        self.model.columns.unknown_values(&self.features)
    }

    /// How far a first pick of some configurations is expected to be above the fastest, given what is expected of it; nothing if
    /// the lists do not say it.
    pub fn slowdown(&self, expected: f64, configs: usize) -> Option<Slowdown> {
        let slowdowns = self.model.slowdowns.as_ref();
        slowdowns?.of_pick(expected, configs)
    }

    /// Takes the place of the scores of points.
    pub fn replace_scores(&self, points: &mut [Point]) {
        let rest = self.model.rest(&self.features, None, points);
        for (point, rest) in points.iter_mut().zip(rest) {
            point.score = self.model.slope * point.score + rest;
        }
    }
}

#[cfg(test)]
mod tests;
