//! What kernels of one structure teach about each other, before one of them is measured itself.

use super::{
    Measurements, Point, Prior,
    kendall::{tau, variance_by_chance},
    linear_algebra::{Factor, add_scaled, dot, scalar},
};
use crate::statistics::{centered, mean};

/// How the ln(seconds) of tiles rise with the model's score and with the logarithms of their bounds, on one target and for kernels
/// of one structure.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pool {
    /// What the score and each bound add, per unit.
    rises: Vec<f64>,
}

/// What a pool rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PoolBasis {
    /// Number of kernels.
    pub(crate) graphs: usize,
    /// Number of their measured configurations.
    pub(crate) measured: usize,
    /// Mean over the kernels of Kendall's tau of the times and what the other kernels predict.
    pub(crate) left_out_tau: f64,
    /// The same of the times and the model's scores.
    pub(crate) score_tau: f64,
    /// `None` if the pool is used.
    pub(crate) refusal: Option<PoolRefusal>,
}

/// Why a pool is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolRefusal {
    /// Fewer than two kernels have enough measurements.
    TooFewKernels,
    /// The kernels predict each other no better than the model does.
    NoBetterThanModel,
    /// The kernels predict each other no better than chance may.
    NoBetterThanChance,
}

/// The measurements of a kernel, around their means.
struct CenteredTimes {
    /// `[measured]` the score and the bounds, in their units.
    rows: Vec<Vec<f64>>,
    times: Vec<f64>,
    scores: Vec<f64>,
}

/// The equations `(XᵀX + λI)·b = Xᵀy` of a linear regression.
#[derive(Default)]
struct NormalEquations {
    /// `[columns, columns]` the product `XᵀX`.
    products: Vec<f64>,
    /// `[columns]` the product `Xᵀy`.
    sums: Vec<f64>,
}

/// The unit of logarithms of bounds, which is about twice their deviation in lists of tiles.
const BOUNDS_UNIT: f64 = 2.2;

/// Deviation of ln(seconds) from what score and bounds explain, which counts as noise.
const NOISE: f64 = 0.2;

/// Deviation of what a unit adds, from what is expected before anything is measured.
const RISE: f64 = 0.3;

/// By how much the other kernels have to predict better than the model.
const GAIN: f64 = 0.03;

/// How many deviations better than chance, since the model may be no better than that.
const SURE: f64 = 3.0;

/// Minimum number of kernels.
const MIN_KERNELS: usize = 2;

/// Minimum number of measured configurations of a kernel.
const MIN_MEASURED: usize = 3;

impl Pool {
    /// Learns from the measurements of other kernels. Returns no pool if they predict each other no better than the model does,
    /// which shows when each kernel is left out in turn.
    pub(crate) fn of(prior: Prior, graphs: &[Measurements]) -> (Option<Self>, PoolBasis) {
        let has_enough = |graph: &&Measurements| graph.measured() >= MIN_MEASURED;
        let enough = graphs.iter().filter(has_enough);
        let centered = enough.map(|graph| CenteredTimes::of(prior, graph));
        let centered: Vec<CenteredTimes> = centered.collect();
        let basis = PoolBasis::of(prior, &centered);
        let pool = || Self {
            rises: in_units(prior, rises(prior, centered.iter())),
        };
        (basis.refusal.is_none().then(pool), basis)
    }

    /// The ln(seconds) of a tile up to a common number, which is to take the place of its score.
    pub(crate) fn score(&self, point: &Point) -> f64 {
        self.rises[0] * point.score + dot(&self.rises[1..], &point.bounds)
    }
}

impl PoolBasis {
    fn of(prior: Prior, graphs: &[CenteredTimes]) -> Self {
        let mut basis = Self {
            graphs: graphs.len(),
            measured: graphs.iter().map(|graph| graph.times.len()).sum(),
            ..Self::default()
        };
        basis.refusal = if graphs.len() < MIN_KERNELS {
            Some(PoolRefusal::TooFewKernels)
        } else {
            let chance = basis.leave_each_out(prior, graphs);
            basis.reason_to_refuse(chance)
        };
        basis
    }

    /// Why a pool is not used, given by how much the mean tau deviates from 0 by chance.
    fn reason_to_refuse(&self, chance: f64) -> Option<PoolRefusal> {
        // Chance comes first: a pool may beat a model that is worse than random.
        match self.left_out_tau {
            tau if tau <= SURE * chance => Some(PoolRefusal::NoBetterThanChance),
            tau if tau <= self.score_tau + GAIN => Some(PoolRefusal::NoBetterThanModel),
            _ => None,
        }
    }

    /// Compares the times of each kernel with what the others and the model predict. Returns by how much the mean tau deviates from
    /// 0 by chance.
    fn leave_each_out(&mut self, prior: Prior, graphs: &[CenteredTimes]) -> f64 {
        let share = |value: f64| value / scalar(graphs.len());
        let mut variance = 0.0;
        for (number, left_out) in graphs.iter().enumerate() {
            let (before, from) = graphs.split_at(number);
            let rises = rises(prior, before.iter().chain(&from[1..]));
            let rows = left_out.rows.iter();
            let predicted: Vec<f64> = rows.map(|row| dot(row, &rises)).collect();
            let times = &left_out.times;
            self.left_out_tau += share(tau(times, &predicted));
            self.score_tau += share(tau(times, &left_out.scores));
            // The variance of a share falls with its square.
            variance += share(share(variance_by_chance(times.len())));
        }
        variance.sqrt()
    }
}

impl CenteredTimes {
    fn of(prior: Prior, measurements: &Measurements) -> Self {
        let points = &measurements.points;
        let mut rows: Vec<Vec<f64>> = points.iter().map(|point| row(prior, point)).collect();
        // Kernels have levels of their own, which centering takes out. Only the rises are common.
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

fn row(prior: Prior, point: &Point) -> Vec<f64> {
    let score = point.score / prior.score_unit();
    let bounds = point.bounds.iter().map(|bound| bound / BOUNDS_UNIT);
    std::iter::once(score).chain(bounds).collect()
}

/// What a unit of the score and of each bound adds: a Bayesian linear regression, in which the score is expected to add the
/// spread, and the bounds nothing.
fn rises<'a>(prior: Prior, graphs: impl Iterator<Item = &'a CenteredTimes>) -> Vec<f64> {
    let mut equations = NormalEquations::default();
    for graph in graphs {
        for (row, time) in graph.rows.iter().zip(&graph.times) {
            // What the score is expected to add is taken from the times, and added to the result.
            equations.add(row, time - prior.spread * row[0]);
        }
    }
    let mut rises = equations.solve(NOISE * NOISE / (RISE * RISE));
    rises[0] += prior.spread;
    rises
}

impl NormalEquations {
    fn add(&mut self, row: &[f64], target: f64) {
        let size = row.len();
        self.products.resize(size * size, 0.0);
        self.sums.resize(size, 0.0);
        add_scaled(&mut self.sums, row, target);
        for (products, &own) in self.products.chunks_exact_mut(size).zip(row) {
            add_scaled(products, row, own);
        }
    }

    /// Returns b, given λ.
    fn solve(mut self, ridge: f64) -> Vec<f64> {
        let size = self.sums.len();
        for place in 0..size {
            self.products[place * size + place] += ridge;
        }
        Factor::of(self.products, size).solve(&self.sums)
    }
}

fn in_units(prior: Prior, mut rises: Vec<f64>) -> Vec<f64> {
    rises[0] /= prior.score_unit();
    for rise in &mut rises[1..] {
        *rise /= BOUNDS_UNIT;
    }
    rises
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::Measurement;

    const PRIOR: Prior = Prior::of_model(0.05, 0.3);

    fn tile(number: u32) -> Point {
        let bounds = [f64::from(number % 4), f64::from(number / 4)].into();
        Point {
            score: f64::from(number * 7 % 5),
            bounds,
            ..Point::default()
        }
    }

    /// Times that rise with the second bound and not with the score. Kernels differ in how long they take.
    fn kernel(size: u32, order: impl Fn(u32) -> u32) -> Measurements {
        let seconds = |number| 1e-3 * f64::from(size) * libm::exp(f64::from(order(number) / 4));
        let each = |number| Measurement {
            point: tile(number),
            seconds: Some(seconds(number)),
            repeats: 1,
        };
        Measurements::of((0..16).map(each).collect())
    }

    #[test]
    fn kernels_that_agree_teach_how_times_rise() {
        let (pool, basis) = Pool::of(PRIOR, &[1, 2, 3].map(|size| kernel(size, |number| number)));
        let scores: Vec<f64> = (0..16)
            .map(|number| pool.as_ref().unwrap().score(&tile(number)))
            .collect();
        let times: Vec<f64> = (0..16).map(|number| f64::from(number / 4)).collect();
        println!("{basis:?}, tau {}", tau(&times, &scores));
        assert_eq!((basis.graphs, basis.measured), (3, 48));
        assert!(basis.left_out_tau > 0.8 && basis.score_tau < 0.2);
        assert!(tau(&times, &scores) > 0.8);
    }

    #[test]
    fn shuffled_times_make_no_pool() {
        let shuffled = [3, 5, 11].map(|factor| kernel(factor, move |number| number * factor % 16));
        let (pool, basis) = Pool::of(PRIOR, &shuffled);
        assert_eq!(
            (pool, basis.refusal),
            (None, Some(PoolRefusal::NoBetterThanChance)),
            "{basis:?}"
        );
    }

    #[test]
    fn kernels_that_the_model_predicts_as_well_are_no_pool() {
        let seconds = |number| libm::exp(f64::from(number * 7 % 5));
        let each = |number| Measurement {
            point: tile(number),
            seconds: Some(seconds(number)),
            repeats: 1,
        };
        let known = [(); 3].map(|()| Measurements::of((0..16).map(each).collect()));
        let (pool, basis) = Pool::of(PRIOR, &known);
        assert_eq!(
            (pool, basis.refusal),
            (None, Some(PoolRefusal::NoBetterThanModel)),
            "{basis:?}"
        );
    }

    #[test]
    fn one_kernel_is_no_pool() {
        let (pool, basis) = Pool::of(
            PRIOR,
            &[kernel(1, |number| number), Measurements::default()],
        );
        assert_eq!(
            (pool, basis.graphs, basis.refusal),
            (None, 1, Some(PoolRefusal::TooFewKernels))
        );
    }
}
