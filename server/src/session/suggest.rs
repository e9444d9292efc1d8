//! Chooses which configurations of a batch to measure next.

use std::{collections::BTreeSet, sync::Arc};

use hlorank_graph::Configurations;

use super::adapt::points;
use crate::{
    adaptation::{Adapted, Candidates, LayoutRows, Point, Suggestion, Wanted},
    engine::rank,
};

/// A configuration to measure, and what is predicted of it.
pub(crate) struct Suggested {
    pub(crate) suggestion: Suggestion,
    /// The predicted ln(seconds), or the model's score.
    pub(crate) score: f32,
    /// The deviation of the predicted ln(seconds); `None` if nothing was learned.
    pub(crate) deviation: Option<f64>,
}

/// What is known of a batch to choose from.
pub(super) struct Choice {
    pub(super) configurations: Arc<Configurations>,
    /// The model's scores.
    pub(super) scores: Vec<f32>,
    /// The predicted ln(seconds) of each configuration; the model's score, if nothing was learned.
    pub(super) predicted: Vec<f32>,
    /// The configurations that were measured or failed.
    pub(super) measured: Arc<Vec<Point>>,
    pub(super) adapted: Option<Arc<Adapted>>,
}

/// Number of configurations, those with the lowest predicted times, of which the expected improvement is computed.
const CONSIDERED: usize = 1_024;

/// Bytes that choosing takes, given the number of measurements and of suggestions and pending configurations.
pub(super) fn choosing_bytes(measured: usize, others: usize) -> usize {
    2 * CONSIDERED * (measured + others) * size_of::<f64>()
}

impl Choice {
    pub(super) fn suggest(&self, wanted: &Wanted) -> Vec<Suggested> {
        let ranking = self.ranking();
        let point = |config| points(&self.configurations, &[config], &self.scores).remove(0);
        let candidates = Candidates { ranking: &ranking, considered: CONSIDERED, point: &point };
        let suggestions = match &self.adapted {
            Some(adapted) => adapted.suggest(&candidates, wanted),
            None => wanted.by_model(&ranking),
        };
        let described = |suggestion: Suggestion| Suggested {
            suggestion,
            score: self.predicted[suggestion.config],
            deviation: self.adapted.as_ref().map(|each| each.predict(&point(suggestion.config)).deviation),
        };
        suggestions.into_iter().map(described).collect()
    }

    /// The distinct configurations that were not measured, by ascending predicted time.
    fn ranking(&self) -> Vec<usize> {
        let mut may_be: Vec<bool> = vec![false; self.scores.len()];
        for first in self.configurations.batch().distinct().first {
            may_be[first] = true;
        }
        self.leave_out_measured(&mut may_be);
        let ranking = rank(&self.predicted, 0).into_iter().map(|config| config as usize);
        ranking.filter(|&config| may_be[config]).collect()
    }

    fn leave_out_measured(&self, may_be: &mut [bool]) {
        let places = 0..may_be.len();
        match &*self.configurations {
            Configurations::Layout(batch) => {
                let rows = LayoutRows::of(&self.measured, batch);
                places
                    .filter(|&config| rows.contain(batch.row(config)))
                    .for_each(|config| may_be[config] = false);
            }
            Configurations::Tile(_) => {
                let bounds =
                    |point: &Point| point.bounds.iter().map(|bound| bound.to_bits()).collect::<Vec<_>>();
                let measured: BTreeSet<_> = self.measured.iter().map(bounds).collect();
                let all: Vec<usize> = places.collect();
                let points = points(&self.configurations, &all, &self.scores);
                points
                    .iter()
                    .zip(may_be)
                    .filter(|(point, _)| measured.contains(&bounds(point)))
                    .for_each(|(_, may_be)| *may_be = false);
            }
        }
    }
}
