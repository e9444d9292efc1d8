use std::iter;

use crate::{
    Measurements, Point, Prior,
    linear_algebra::{Factor, add_scaled, dot},
    statistics::{centered, mean},
};

/// How ln(seconds) rises with the model's score and with the bounds of tiles. Kernels have few measurements and new bounds, which a
/// line continues.
#[derive(Debug)]
pub(super) struct Rises {
    score: f64,
    bounds: Vec<f64>,
}

/// The unit of logarithms of bounds, which is about twice their deviation in lists of tiles.
const BOUNDS_UNIT: f64 = 2.2;

/// Deviation of ln(seconds) of kernels from what score and bounds explain, which counts as noise.
const NOISE: f64 = 0.2;

/// Deviation of what a unit adds, from what is expected before anything is measured.
const RISE: f64 = 0.3;

impl Rises {
    /// A Bayesian linear regression around the means of each list, in which the score is expected to add the spread, and the bounds
    /// nothing. It solves `(XᵀX + λI)·b = Xᵀy`.
    pub(super) fn new<'a>(prior: Prior, lists: impl Iterator<Item = &'a Measurements>) -> Self {
        let unit = prior.spread / prior.slope;
        let (mut products, mut sums) = (Vec::new(), Vec::new());
        for list in lists {
            let rows = list.points.iter().map(|point| {
                let bounds = point.bounds.iter().map(|bound| bound / BOUNDS_UNIT);
                iter::once(point.score / unit).chain(bounds).collect()
            });
            let mut rows: Vec<Vec<f64>> = rows.collect();
            for place in 0..rows[0].len() {
                let column: Vec<f64> = rows.iter().map(|row| row[place]).collect();
                let center = mean(&column);
                for row in &mut rows {
                    row[place] -= center;
                }
            }
            for (row, time) in rows.iter().zip(centered(list.times.clone())) {
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
        let rises = Factor::new(products, size).solve(&sums);
        Self {
            score: (rises[0] + prior.spread) / unit,
            bounds: rises[1..].iter().map(|rise| rise / BOUNDS_UNIT).collect(),
        }
    }

    /// ln(seconds) up to a common number.
    pub(super) fn predict(&self, point: &Point) -> f64 {
        self.score * point.score + dot(&self.bounds, &point.bounds)
    }
}
