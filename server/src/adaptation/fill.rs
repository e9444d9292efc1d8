//! Chooses what to measure until something is learned: configurations that lie far apart.

use std::collections::BTreeSet;

use super::{Candidates, Point, Reason, Suggestion, SuggestionRequest, column_scale::ColumnScale};
use crate::statistics::squared_distance;

/// Number of random configurations of which the one is suggested that lies farthest from all others. More of them would lead to
/// the corners of a space, where configurations are seldom fast.
const DRAWN: usize = 8;

/// Number of configurations, those that are predicted fastest, of which the one is suggested that lies farthest from all others.
/// It was chosen on searches in 17 spaces, where 64 find as much after 20 measurements and less after 10.
const BEST: usize = 16;

impl SuggestionRequest {
    /// Suggests configurations that fill the space around those that were measured, while nothing tells them apart.
    pub(crate) fn filling(
        &self,
        candidates: &Candidates<'_>,
        measured: &[Point],
    ) -> Vec<Suggestion> {
        self.far_apart(candidates, measured, Reason::Random, |left, others| {
            let numbers = (0..DRAWN).map(|draw| left[self.draw(others * DRAWN + draw, left.len())]);
            let drawn: BTreeSet<usize> = numbers.collect();
            drawn.into_iter().collect()
        })
    }

    /// Suggests configurations that other targets predict fast. The first may be slow on this one, and what is like it then is,
    /// too.
    pub(crate) fn best_far_apart(
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
            suggestions.push(Suggestion::of(config, reason));
        }
        suggestions
    }
}

/// The number of the point whose nearest neighbour among the known ones is farthest.
fn farthest(points: &[Point], known: &[Point]) -> usize {
    let all: Vec<Point> = points.iter().chain(known).cloned().collect();
    // Without known times, no column counts more than another.
    let scale = ColumnScale::of(&all, &vec![0.0; all.len()]);
    let known: Vec<Vec<f64>> = known.iter().map(|point| scale.coordinates(point)).collect();
    let to_nearest = |point: &Point| nearest(&scale.coordinates(point), &known);
    let distances: Vec<f64> = points.iter().map(to_nearest).collect();
    let farther = |one: &usize, other: &usize| distances[*one].total_cmp(&distances[*other]);
    // `max_by` returns the last of equal ones, and so, in reverse, the first of them.
    (0..points.len()).rev().max_by(farther).unwrap_or(0)
}

/// The squared distance to the nearest of some others; infinity if there are none.
fn nearest(own: &[f64], others: &[Vec<f64>]) -> f64 {
    let distances = others.iter().map(|other| squared_distance(own, other));
    distances.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::node_columns::NodeColumns;

    fn point(number: usize) -> Point {
        let columns = [number % 8, number / 8].map(|each| f64::from(u32::try_from(each).unwrap()));
        Point {
            columns: NodeColumns::of_values(&columns),
            ..Point::default()
        }
    }

    fn suggested(measured: &[usize], count: usize, seed: u64) -> Vec<usize> {
        numbers(measured, count, seed, SuggestionRequest::filling)
    }

    type Suggest = fn(&SuggestionRequest, &Candidates<'_>, &[Point]) -> Vec<Suggestion>;

    fn numbers(measured: &[usize], count: usize, seed: u64, suggest: Suggest) -> Vec<usize> {
        let wanted = SuggestionRequest {
            count,
            pending: Vec::new(),
            since_improvement: 0,
            seed,
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
        let suggestions = suggest(&wanted, &candidates, &measured);
        suggestions.iter().map(|each| each.config).collect()
    }

    #[test]
    fn suggestions_differ_from_each_other_and_by_seed() {
        let all = suggested(&[], 64, 1);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 64);
        assert_eq!(all, suggested(&[], 64, 1));
        assert_ne!(all[..8], suggested(&[], 8, 2));
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
        let filling = by_seed(&|seed| mean_of_nearest(&suggested(&[0, 9], 4, seed)));
        let random = by_seed(&|seed| {
            let numbers: BTreeSet<usize> = (0..4)
                .map(|draw| crate::split_mix::below(crate::split_mix::mix(seed * 8 + draw), 64))
                .collect();
            mean_of_nearest(&numbers.into_iter().collect::<Vec<_>>())
        });
        assert!(filling > 1.5 * random, "{filling} against {random}");
    }
}
