//! Chooses what to measure next: by expected improvement, several at a time, with a random one now and then; until something is
//! learned, by what is predicted, or configurations that lie far apart.

use std::{collections::BTreeSet, ops::Range};

use super::{AdaptedModel, Point, column_scale::ColumnScale, joint::Joint};
use crate::{
    split_mix::{below, mix},
    statistics::squared_distance,
};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct SuggestionRequest {
    /// Number of suggestions.
    pub count: usize,
    /// Configurations that are being measured.
    pub pending: Vec<usize>,
    /// Number of measurements since the fastest one.
    pub since_improvement: u32,
    /// What random choices follow from.
    pub seed: u64,
}

/// A configuration to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Suggestion {
    /// Number of the configuration.
    pub config: usize,
    /// Why it is suggested.
    pub reason: Reason,
    /// By how much the logarithm of the fastest time is expected to fall.
    pub improvement: f64,
}

/// Why a configuration is suggested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The model ranks it first, and nothing is known yet of run times.
    Model,
    /// It is expected to be faster than the fastest that was measured.
    ExpectedImprovement,
    /// It is unlike what was measured.
    Random,
}

/// Measurements without improvement, after which a random configuration is measured.
const FRUITLESS: u32 = 5;

/// Number of random configurations of which the one is suggested that lies farthest from all others. More of them would lead to
/// the corners of a space, where configurations are seldom fast.
const DRAWN: usize = 8;

/// Number of configurations, those that are predicted fastest, of which the one is suggested that lies farthest from all others.
/// It was chosen on searches in 17 spaces, where 64 find as much after 20 measurements and less after 10.
const BEST: usize = 16;

impl Suggestion {
    /// A suggestion for which no improvement is computed.
    fn new(config: usize, reason: Reason) -> Self {
        Self {
            config,
            reason,
            improvement: 0.0,
        }
    }
}

impl SuggestionRequest {
    /// Whether the suggestion after this many others is a random one, if none of them improves the fastest time.
    fn is_random(&self, others: usize) -> bool {
        // The suggestions of one call count like fruitless measurements, so that the turn comes at
        // the same place whether a client asks for one at a time or for several.
        let fruitless = self
            .since_improvement
            .saturating_add(u32::try_from(others).unwrap_or(u32::MAX));
        fruitless > 0 && fruitless.is_multiple_of(FRUITLESS)
    }

    /// A number below `count`, at random, for the suggestion after this many others.
    fn draw(&self, others: usize, count: usize) -> usize {
        // The number of fruitless measurements makes calls with one seed draw different numbers.
        let parts = [self.seed, self.since_improvement.into(), others as u64];
        let state = parts.into_iter().fold(0, |state, part| mix(state ^ part));
        below(state, count)
    }

    /// Suggests the configurations that the model ranks first. `ranking` has those that may be suggested.
    pub fn by_model(&self, ranking: &[usize]) -> Vec<Suggestion> {
        let suggested = self.left(ranking).into_iter().take(self.count);
        suggested
            .map(|config| Suggestion::new(config, Reason::Model))
            .collect()
    }

    /// Suggests configurations that fill the space around those that were measured, while nothing tells them apart.
    pub fn filling(&self, candidates: &Candidates<'_>, measured: &[Point]) -> Vec<Suggestion> {
        self.far_apart(candidates, measured, Reason::Random, |left, others| {
            let numbers = (0..DRAWN).map(|draw| left[self.draw(others * DRAWN + draw, left.len())]);
            let drawn: BTreeSet<usize> = numbers.collect();
            drawn.into_iter().collect()
        })
    }

    /// Suggests configurations that other targets predict fast. The first may be slow on this one, and what is like it then is,
    /// too.
    pub fn best_far_apart(
        &self,
        candidates: &Candidates<'_>,
        measured: &[Point],
    ) -> Vec<Suggestion> {
        self.far_apart(candidates, measured, Reason::Model, |left, _| {
            left[..left.len().min(BEST)].to_vec()
        })
    }

    /// Suggests configurations, each the one that lies farthest from all known ones among some of those that are left. `some` is
    /// also given the number of the known ones.
    fn far_apart(
        &self,
        candidates: &Candidates<'_>,
        measured: &[Point],
        reason: Reason,
        some: impl Fn(&[usize], usize) -> Vec<usize>,
    ) -> Vec<Suggestion> {
        let mut left = self.left(candidates.ranking);
        let mut known = measured.to_vec();
        known.extend((candidates.points)(&self.pending));
        let mut suggestions = Vec::new();
        while suggestions.len() < self.count && !left.is_empty() {
            let among = some(&left, known.len() + suggestions.len());
            let mut points = (candidates.points)(&among);
            let farthest = farthest(&points, &known);
            let config = among[farthest];
            known.push(points.swap_remove(farthest));
            left.retain(|&other| other != config);
            suggestions.push(Suggestion::new(config, reason));
        }
        suggestions
    }

    /// Leaves out what is being measured.
    fn left(&self, ranking: &[usize]) -> Vec<usize> {
        let pending: BTreeSet<usize> = self.pending.iter().copied().collect();
        let ranking = ranking.iter().copied();
        ranking.filter(|config| !pending.contains(config)).collect()
    }
}

/// The configurations that may be suggested.
pub struct Candidates<'a> {
    /// Their numbers, by ascending predicted time.
    pub ranking: &'a [usize],
    /// The number of the first ones of which the expected improvement is computed.
    pub considered: usize,
    /// The numbers among which random suggestions are drawn.
    pub drawn: Range<usize>,
    /// The points of the configurations of these numbers.
    pub points: &'a dyn Fn(&[usize]) -> Vec<Point>,
}

impl AdaptedModel {
    /// Suggests configurations to measure. Each is chosen as if those before it, and the pending ones, had been measured
    /// with the time that is predicted for them.
    pub fn suggest(
        &self,
        candidates: &Candidates<'_>,
        wanted: &SuggestionRequest,
    ) -> Vec<Suggestion> {
        let mut left = wanted.left(candidates.ranking);
        // In a space of columns, improvement is expected of what is uncertain, too.
        let has_columns = self.kernel.scale.is_some();
        let (first, others) = left.split_at(left.len().min(candidates.considered));
        let mut considered = first.to_vec();
        if has_columns && !others.is_empty() {
            // What lies far from all measurements has a middling prediction.
            let numbers = 0..candidates.considered;
            let drawn = numbers.map(|number| others[wanted.draw(number, others.len())]);
            considered.extend(drawn.collect::<BTreeSet<usize>>());
        }
        let points = (candidates.points)(&considered);
        let mut joint = Joint::new(self, considered, &points);
        // Believing takes time, so that the last suggestion, which nothing follows, is not
        // believed.
        let mut believed = wanted.pending.clone();
        let mut suggestions = Vec::new();
        while suggestions.len() < wanted.count && !left.is_empty() {
            let newly_believed = (candidates.points)(&believed);
            for point in &newly_believed {
                joint.believe(point);
            }
            let others = suggestions.len();
            let (config, reason) = if wanted.is_random(others) && !has_columns {
                let drawn = left
                    .iter()
                    .copied()
                    .filter(|config| candidates.drawn.contains(config));
                let drawn: Vec<usize> = drawn.collect();
                let among = if drawn.is_empty() { &left } else { &drawn };
                (among[wanted.draw(others, among.len())], Reason::Random)
            } else {
                (joint.best().unwrap_or(left[0]), Reason::ExpectedImprovement)
            };
            suggestions.push(Suggestion {
                config,
                reason,
                improvement: joint.improvement(config),
            });
            left.retain(|&other| other != config);
            joint.remove(config);
            believed = vec![config];
        }
        suggestions
    }
}

/// The number of the point whose nearest neighbour among the known ones is farthest.
fn farthest(points: &[Point], known: &[Point]) -> usize {
    let all: Vec<Point> = points.iter().chain(known).cloned().collect();
    // Without known times, no column counts more than another.
    let scale = ColumnScale::new(&all, &vec![0.0; all.len()]);
    let known: Vec<Vec<f64>> = known.iter().map(|point| scale.coordinates(point)).collect();
    let distances = points.iter().map(|point| {
        let own = scale.coordinates(point);
        let distances = known.iter().map(|other| squared_distance(&own, other));
        distances.fold(f64::INFINITY, f64::min)
    });
    let distances: Vec<f64> = distances.collect();
    let farther = |one: &usize, other: &usize| distances[*one].total_cmp(&distances[*other]);
    // `max_by` returns the last of equal ones, and so, in reverse, the first of them.
    (0..points.len()).rev().max_by(farther).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Measurement, Measurements, Prior, statistics::scalar};

    const PRIOR: Prior = Prior::of_model(0.05, 0.3);

    /// Layouts of three tensors whose time is a sum over tensors.
    fn layout(number: usize) -> Point {
        let orders = [number % 3, number / 3 % 3, number / 9 % 3];
        let orders = orders.map(|order| u32::try_from(order).unwrap());
        Point::of_orders(scalar(number % 5), &orders)
    }

    fn seconds(number: usize) -> f64 {
        let sum = number % 3 + number / 3 % 3 * 2 + number / 9 % 3 * 5;
        0.001 * libm::exp(scalar(sum) / 10.0)
    }

    fn adapted(numbers: &[usize]) -> AdaptedModel {
        let each = |&number: &usize| {
            let noise = if number.is_multiple_of(2) { 1.003 } else { 1.0 };
            Measurement::of_time(layout(number), seconds(number) * noise)
        };
        AdaptedModel::new(PRIOR, Measurements::new(numbers.iter().map(each).collect())).unwrap()
    }

    fn wanted(count: usize) -> SuggestionRequest {
        SuggestionRequest {
            count,
            pending: Vec::new(),
            since_improvement: 1,
            seed: 7,
        }
    }

    fn suggested(measured: &[usize], wanted: &SuggestionRequest) -> Vec<Suggestion> {
        let ranking: Vec<usize> = (0..27)
            .rev()
            .filter(|number| !measured.contains(number))
            .collect();
        let candidates = Candidates {
            ranking: &ranking,
            considered: 100,
            drawn: 0..27,
            points: &|numbers: &[usize]| numbers.iter().copied().map(layout).collect(),
        };
        adapted(measured).suggest(&candidates, wanted)
    }

    fn configs(suggestions: &[Suggestion]) -> Vec<usize> {
        suggestions.iter().map(|each| each.config).collect()
    }

    #[test]
    fn a_search_by_suggestions_finds_the_fastest() {
        let mut measured = vec![26, 13, 17];
        // The first is the fastest.
        while !measured.contains(&0) {
            measured.push(suggested(&measured, &wanted(1))[0].config);
        }
        assert!(measured.len() <= 12, "{measured:?}");
    }

    #[test]
    fn suggestions_differ_from_each_other_and_from_what_is_pending() {
        let measured = [26, 13, 17, 5];
        let all = configs(&suggested(&measured, &wanted(4)));
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 4);
        let pending = SuggestionRequest {
            pending: all[..2].to_vec(),
            ..wanted(2)
        };
        let next = configs(&suggested(&measured, &pending));
        assert!(!all[..2].contains(&next[1]), "{next:?}");
        assert_eq!(
            next[0], all[2],
            "what is pending counts as what was suggested before"
        );
    }

    #[test]
    fn every_fifth_suggestion_without_improvement_is_random() {
        let fruitless = SuggestionRequest {
            since_improvement: 4,
            ..wanted(7)
        };
        let reasons: Vec<bool> = suggested(&[26, 13, 17], &fruitless)
            .iter()
            .map(|each| each.reason == Reason::Random)
            .collect();
        assert_eq!(reasons, [false, true, false, false, false, false, true]);
        let drawn = |seed| {
            let seeded = SuggestionRequest {
                seed,
                ..fruitless.clone()
            };
            suggested(&[26, 13, 17], &seeded)[1].config
        };
        assert_eq!(drawn(7), drawn(7));
        assert!((0..20).any(|seed| drawn(seed) != drawn(7)));
    }

    #[test]
    fn all_that_is_left_is_suggested() {
        let measured: Vec<usize> = (3..27).collect();
        let mut all = configs(&suggested(&measured, &wanted(64)));
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(configs(&wanted(2).by_model(&[5, 3, 4])), [5, 3]);
    }

    #[test]
    fn a_believed_time_leaves_less_to_learn() {
        let measured = [26, 13, 17, 5];
        let adapted = adapted(&measured);
        let points = [layout(0), layout(1)];
        let mut joint = Joint::new(&adapted, vec![0, 1], &points);
        let before = joint.improvement(1);
        joint.believe(&layout(1));
        assert!(
            joint.improvement(1) < before / 2.0,
            "{} {before}",
            joint.improvement(1)
        );
    }

    #[test]
    fn what_is_left_out_is_no_better_than_the_best() {
        let adapted = adapted(&[26, 13, 17, 5]);
        let numbers: Vec<usize> = (0..27).filter(|number| number % 4 != 1).collect();
        let points: Vec<Point> = numbers.iter().copied().map(layout).collect();
        let [mut few, mut all] = [(); 2].map(|()| Joint::new(&adapted, numbers.clone(), &points));
        for _ in 0..numbers.len() {
            let best = few.best().unwrap();
            let largest = |largest: (usize, f64), &number: &usize| {
                let improvement = all.improvement(number);
                if improvement > largest.1 {
                    (number, improvement)
                } else {
                    largest
                }
            };
            let largest = numbers.iter().fold((usize::MAX, -1.0), largest);
            assert_eq!((best, few.improvement(best)), largest);
            for joint in [&mut few, &mut all] {
                joint.remove(best);
                joint.believe(&layout(best));
            }
        }
    }

    fn point(number: usize) -> Point {
        Point::of_columns(&[number % 8, number / 8].map(scalar))
    }

    fn filled(measured: &[usize], count: usize, seed: u64) -> Vec<usize> {
        numbers(measured, count, seed, SuggestionRequest::filling)
    }

    type Suggest = fn(&SuggestionRequest, &Candidates<'_>, &[Point]) -> Vec<Suggestion>;

    fn numbers(measured: &[usize], count: usize, seed: u64, suggest: Suggest) -> Vec<usize> {
        let wanted = SuggestionRequest {
            since_improvement: 0,
            seed,
            ..wanted(count)
        };
        let ranking: Vec<usize> = (0..64)
            .filter(|number| !measured.contains(number))
            .collect();
        let candidates = Candidates {
            ranking: &ranking,
            considered: 64,
            drawn: 0..64,
            points: &|numbers: &[usize]| numbers.iter().copied().map(point).collect(),
        };
        let measured: Vec<Point> = measured.iter().copied().map(point).collect();
        configs(&suggest(&wanted, &candidates, &measured))
    }

    #[test]
    fn suggestions_differ_from_each_other_and_by_seed() {
        let all = filled(&[], 64, 1);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 64);
        assert_eq!(all, filled(&[], 64, 1));
        assert_ne!(all[..8], filled(&[], 8, 2));
    }

    #[test]
    fn what_is_predicted_fast_is_suggested_from_afar() {
        let best = |measured: &[usize], count| {
            numbers(measured, count, 1, SuggestionRequest::best_far_apart)
        };
        assert_eq!(best(&[], 1), [0], "nothing is known: the fastest");
        let three = best(&[], 3);
        assert_eq!(three[0], 0);
        assert!(three[1..].iter().all(|number| (7..=17).contains(number)));
        assert_eq!(
            best(&[0], 2),
            three[1..],
            "measured and suggested are alike"
        );
    }

    #[test]
    fn suggestions_keep_their_distance() {
        let mean_of_nearest = |chosen: &[usize]| {
            let nearest = |one: &usize| {
                let others = chosen.iter().filter(|other| *other != one);
                let columns = |number: usize| [0, 1].map(|place| point(number).feature(place));
                let own = columns(*one);
                others
                    .map(|other| squared_distance(&own, &columns(*other)))
                    .fold(f64::INFINITY, f64::min)
            };
            chosen.iter().map(nearest).sum::<f64>()
        };
        let by_seed = |of: &dyn Fn(u64) -> f64| (0..20).map(of).sum::<f64>();
        let filling = by_seed(&|seed| mean_of_nearest(&filled(&[0, 9], 4, seed)));
        let random = by_seed(&|seed| {
            let numbers: BTreeSet<usize> = (0..4)
                .map(|draw| crate::split_mix::below(crate::split_mix::mix(seed * 8 + draw), 64))
                .collect();
            mean_of_nearest(&numbers.into_iter().collect::<Vec<_>>())
        });
        assert!(filling > 1.5 * random, "{filling} against {random}");
    }
}
