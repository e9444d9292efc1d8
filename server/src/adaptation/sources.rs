//! What the measurements of a graph on other targets say of its run times on a further target.
//!
//! Times of different targets are never mixed: what boosted trees learn from the sources is a first expectation of the order, and
//! the target's own measurements tell the difference. A source is left out if the others do not predict it at all, since it then
//! says nothing of a further target, or if the target's own measurements contradict it.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::{
    Measurements, Point, Prior,
    kendall::{deviations_from_chance, tau},
    linear_algebra::add_scaled,
    trees::{Examples, Trees},
};
use crate::statistics::{centered, deviation, mean};

/// What other targets teach about the ln(seconds) of a graph's configurations, up to a common number.
#[derive(Debug)]
pub(crate) struct Sources {
    /// How much ln(seconds) rises per unit of the model's score.
    slope: f64,
    trees: Trees,
    /// Deviation of ln(seconds) on a further target from what they say.
    spread: f64,
}

/// What one source says, and whether it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SourceBasis {
    /// Number of distinct configurations that were measured or failed.
    pub(crate) measured: usize,
    /// Kendall's tau of its predictions and the times that it is compared with; 0 if there are none.
    pub(crate) agreement: f64,
    /// `None` if the source is used.
    pub(crate) refusal: Option<SourceRefusal>,
}

/// Why a source is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SourceRefusal {
    /// Too few configurations have a time, or all times are equal.
    TooFewMeasurements,
    /// The other sources do not predict it better than chance.
    UnlikeOthers,
    /// The target's own measurements contradict it.
    Contradicted,
}

/// The measurements of some sources, and what each of them says alone.
pub(crate) struct StudiedSources {
    prior: Prior,
    sources: Vec<StudiedSource>,
    /// What the sources say together, by which of them are used.
    together: Mutex<BTreeMap<Vec<bool>, Arc<Sources>>>,
}

struct StudiedSource {
    examples: Examples,
    basis: SourceBasis,
    /// What it says alone.
    trees: Trees,
    /// Deviation of its times from what the others say; from their mean if there are no others.
    spread: f64,
}

/// Rounds of learning from all sources, and from some of them to compare sources.
const ROUNDS: usize = 200;
const ROUNDS_TO_COMPARE: usize = 60;

/// Minimum number of times of a source, and of the target's own that a source is compared with.
const ENOUGH: usize = 5;

/// Number of the target's own times from which on a source has to agree with them, by this many deviations of chance: it then
/// teaches nothing that they do not.
const MANY: usize = 20;
const AGREES_NOT: f64 = 0.5;

/// How many deviations better than chance the others have to predict a source.
const SURE: f64 = 2.0;

impl StudiedSources {
    /// Compares sources with each other.
    pub(crate) fn of(prior: Prior, sources: &[Measurements]) -> Self {
        let examples = sources.iter().map(|source| examples(prior, source));
        let examples: Vec<Option<Examples>> = examples.collect();
        let studied = sources.iter().enumerate();
        let studied = studied.map(|(number, source)| match &examples[number] {
            Some(own) => StudiedSource::of(source, own, &all_but(number, &examples)),
            None => StudiedSource::too_few(source),
        });
        Self {
            prior,
            sources: studied.collect(),
            together: Mutex::default(),
        }
    }

    /// Returns what the sources say that neither the others nor the target's own measurements speak against.
    pub(crate) fn given(&self, own: &Measurements) -> (Option<Arc<Sources>>, Vec<SourceBasis>) {
        let bases: Vec<SourceBasis> = self.sources.iter().map(|each| each.given(own)).collect();
        let used: Vec<bool> = bases.iter().map(|basis| basis.refusal.is_none()).collect();
        let sources = used.contains(&true).then(|| self.used(used));
        (sources, bases)
    }

    /// What the sources that are used say together.
    fn used(&self, used: Vec<bool>) -> Arc<Sources> {
        if let Some(known) = self.together.lock().get(&used) {
            return Arc::clone(known);
        }
        // The lock is not held while trees learn, which pauses. Calls that learn the same learn
        // equal trees, so that it does not matter whose are kept.
        let sources = Arc::new(self.together(&used));
        self.together.lock().insert(used, Arc::clone(&sources));
        sources
    }

    fn together(&self, used: &[bool]) -> Sources {
        let used = self.sources.iter().zip(used).filter(|(_, used)| **used);
        let used: Vec<&StudiedSource> = used.map(|(source, _)| source).collect();
        let examples: Vec<&Examples> = used.iter().map(|source| &source.examples).collect();
        let spreads: Vec<f64> = used.iter().map(|source| source.spread).collect();
        Sources {
            slope: self.prior.slope,
            trees: Trees::of(&joined(&examples), ROUNDS),
            spread: mean(&spreads),
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let examples = self.sources.iter().map(|source| &source.examples);
        let bytes = examples.map(|each| Point::bytes(&each.points) + size_of_val(&*each.targets));
        bytes.sum::<usize>() + TREE_BYTES * (self.sources.len() + 2)
    }
}

/// Bytes of the trees of one source at most: `ROUNDS` tables.
const TREE_BYTES: usize = ROUNDS * (64 + 6 * 2) * size_of::<f64>();

impl StudiedSource {
    fn too_few(source: &Measurements) -> Self {
        Self {
            examples: Examples::default(),
            basis: SourceBasis {
                measured: source.distinct(),
                agreement: 0.0,
                refusal: Some(SourceRefusal::TooFewMeasurements),
            },
            trees: Trees::of(&Examples::default(), 0),
            spread: 0.0,
        }
    }

    fn of(source: &Measurements, own: &Examples, others: &[&Examples]) -> Self {
        let mut basis = SourceBasis {
            measured: source.distinct(),
            ..SourceBasis::default()
        };
        let mut left = own.targets.clone();
        // A single source has no other to be compared with, and is believed until measurements of
        // the target contradict it.
        if !others.is_empty() {
            let trees = Trees::of(&joined(others), ROUNDS_TO_COMPARE);
            let predicted = trees.predict(&own.points);
            basis.agreement = tau(&own.targets, &predicted);
            let sure = deviations_from_chance(basis.agreement, own.targets.len()) > SURE;
            basis.refusal = (!sure).then_some(SourceRefusal::UnlikeOthers);
            add_scaled(&mut left, &predicted, -1.0);
        }
        Self {
            examples: own.clone(),
            basis,
            trees: Trees::of(own, ROUNDS_TO_COMPARE),
            spread: deviation(&left),
        }
    }

    /// What it says, given the target's own measurements.
    fn given(&self, own: &Measurements) -> SourceBasis {
        if self.basis.refusal.is_some() || own.measured() < ENOUGH {
            return self.basis;
        }
        let predicted = self.trees.predict(&own.points);
        // Whole times, though its trees predict what the model does not explain of them: many own
        // measurements teach more than a source that adds little to the model, which so is refused.
        let agreement = tau(&own.times, &predicted);
        let contradicts = contradicts(agreement, own.measured());
        SourceBasis {
            agreement,
            refusal: contradicts.then_some(SourceRefusal::Contradicted),
            ..self.basis
        }
    }
}

/// Whether the target's own times contradict a source, given Kendall's tau and their number.
fn contradicts(agreement: f64, measured: usize) -> bool {
    let deviations = deviations_from_chance(agreement, measured);
    // Few times contradict by a reversed order alone, many by an order that is unlike.
    deviations < -SURE || (measured >= MANY && deviations < AGREES_NOT)
}

impl Sources {
    /// The ln(seconds) of configurations up to a common number, which are to take the place of their scores.
    pub(crate) fn scores(&self, points: &[Point]) -> Vec<f64> {
        let mut scores = self.trees.predict(points);
        for (score, point) in scores.iter_mut().zip(points) {
            *score += self.slope * point.score;
        }
        scores
    }

    /// What is expected of run times if it has taken the place of scores.
    pub(crate) fn prior(&self) -> Prior {
        Prior {
            slope: 1.0,
            spread: self.spread.clamp(LEAST_SPREAD, MOST_SPREAD),
            // Sources that say nothing are refused. If they could be doubted here, too, then suggestions would go where they are
            // most extreme, and find less.
            doubt: 0.0,
        }
    }
}

/// Bounds of the deviation of ln(seconds) on a further target.
const LEAST_SPREAD: f64 = 0.05;
const MOST_SPREAD: f64 = 2.0;

/// What the model does not explain of a source's times, around its mean. A failure counts as slow.
fn examples(prior: Prior, source: &Measurements) -> Option<Examples> {
    if source.measured() < ENOUGH || !source.teach() {
        return None;
    }
    let slow = source.clone().with_failures_slow();
    // Targets differ in speed, so that times count around the mean of their target.
    Some(Examples {
        targets: centered(slow.beside_scores(prior.slope)),
        points: slow.points,
    })
}

/// What all sources but one teach, without those that teach nothing.
fn all_but(one: usize, examples: &[Option<Examples>]) -> Vec<&Examples> {
    let examples = examples.iter().enumerate();
    let others = examples.filter(|(number, _)| *number != one);
    others.filter_map(|(_, each)| each.as_ref()).collect()
}

fn joined(examples: &[&Examples]) -> Examples {
    let points = examples.iter().flat_map(|each| each.points.clone());
    let targets = examples.iter().flat_map(|each| each.targets.clone());
    Examples {
        points: points.collect(),
        targets: targets.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::{Measurement, node_columns::NodeColumns};

    const PRIOR: Prior = Prior::of_model(0.05, 0.5);

    fn point(number: u32) -> Point {
        let columns = [number % 8, number / 8].map(f64::from);
        Point {
            columns: NodeColumns::of_values(&columns),
            ..Point::default()
        }
    }

    /// Times that fall with the first column and rise with the second, which targets differ in.
    fn ln_seconds(number: u32, second: f64) -> f64 {
        let [one, other] = [number % 8, number / 8].map(f64::from);
        second * other - 0.3 * one
    }

    fn measured(numbers: impl Iterator<Item = u32>, time: impl Fn(u32) -> f64) -> Measurements {
        let each = |number| Measurement {
            point: point(number),
            seconds: Some(libm::exp(time(number))),
            repeats: 1,
        };
        Measurements::of(numbers.map(each).collect())
    }

    fn target(second: f64) -> Measurements {
        measured(0..64, move |number| ln_seconds(number, second))
    }

    fn shuffled(factor: u32) -> Measurements {
        measured(0..64, move |number| f64::from(number * factor % 61) / 20.0)
    }

    fn refusals(bases: &[SourceBasis]) -> Vec<Option<SourceRefusal>> {
        bases.iter().map(|basis| basis.refusal).collect()
    }

    #[test]
    fn targets_that_agree_predict_another_one() {
        let studied = StudiedSources::of(PRIOR, &[target(0.2), target(0.1), target(0.3)]);
        let (sources, bases) = studied.given(&Measurements::default());
        let sources = sources.unwrap();
        let times: Vec<f64> = (0..64).map(|number| ln_seconds(number, 0.25)).collect();
        let points: Vec<Point> = (0..64).map(point).collect();
        let predicted = sources.scores(&points);
        println!("{bases:?}, tau {}", tau(&times, &predicted));
        assert!(tau(&times, &predicted) > 0.8);
        assert_eq!(refusals(&bases), [None; 3]);
        assert!(
            bases
                .iter()
                .all(|basis| basis.agreement > 0.5 && basis.measured == 64)
        );
    }

    #[test]
    fn a_source_unlike_the_others_is_left_out() {
        let sources = [target(0.2), shuffled(23), target(0.1), target(0.3)];
        let (used, bases) = StudiedSources::of(PRIOR, &sources).given(&Measurements::default());
        let unlike = Some(SourceRefusal::UnlikeOthers);
        assert_eq!(refusals(&bases), [None, unlike, None, None]);
        assert!(used.is_some());
        let shuffled = [shuffled(23), shuffled(37), shuffled(47)];
        let (used, bases) = StudiedSources::of(PRIOR, &shuffled).given(&Measurements::default());
        assert_eq!(refusals(&bases), [unlike; 3]);
        assert!(used.is_none());
    }

    #[test]
    fn own_measurements_contradict_a_source() {
        let studied = StudiedSources::of(PRIOR, &[target(0.2)]);
        let inverted = |number| -ln_seconds(number, 0.2);
        let own = measured((0..64).step_by(5), inverted);
        let (used, bases) = studied.given(&own);
        assert_eq!(refusals(&bases), [Some(SourceRefusal::Contradicted)]);
        assert!(used.is_none() && bases[0].agreement < -0.5);
        let few = measured(0..4, inverted);
        assert!(studied.given(&few).0.is_some(), "too few to tell");
    }

    #[test]
    fn too_few_measurements_are_no_source() {
        let few = measured(0..4, |number| ln_seconds(number, 0.2));
        let equal = measured(0..20, |_| 1.0);
        let failed = Measurements::of(vec![Measurement {
            point: point(1),
            seconds: None,
            repeats: 1,
        }]);
        let studied = StudiedSources::of(PRIOR, &[few, equal, failed, Measurements::default()]);
        let (used, bases) = studied.given(&Measurements::default());
        assert!(used.is_none());
        assert_eq!(
            refusals(&bases),
            [Some(SourceRefusal::TooFewMeasurements); 4]
        );
        let measured: Vec<usize> = bases.iter().map(|basis| basis.measured).collect();
        assert_eq!(measured, [4, 20, 1, 0]);
    }
}
