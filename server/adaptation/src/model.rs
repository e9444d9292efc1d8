use hlorank_graph::LayoutBatch;

use super::{
    LayoutMeans, Measurements, Point, Prior,
    covariance::Covariance,
    effects::Effects,
    fit::Fit,
    kernel::{Kernel, ScaledPoint},
    measurements::SlowSide,
};
use crate::statistics::{Normal, centered, mean, tau, variance_by_chance};

/// A model of the run times of one graph on one target.
pub struct AdaptedModel {
    pub(super) kernel: Kernel,
    /// One with the score as its mean, unless all scores are equal or contradicted, and one without, unless scores are beyond doubt.
    pub(super) hypotheses: Vec<Hypothesis>,
    /// The lowest ln(seconds) that was measured.
    pub(super) fastest: f64,
    /// The mean as a sum over tensors; `None` for tiles, whose mean is no such sum.
    effects: Option<Effects>,
    failed: Vec<Point>,
    /// What was measured of a feature set, by configuration. A smooth process does not give measured times back, and a configuration
    /// that is faster than all around it is what a search looks for.
    known: Vec<(Point, f64)>,
    /// How slow times counted; `None` if all counted as they are.
    slow_side: Option<SlowSide>,
    /// What a run adds to the variance of a configuration's mean ln(seconds).
    run_variance: f64,
    /// What the predictions rest on.
    pub basis: Basis,
}

/// How run times depend on scores.
pub(super) struct Hypothesis {
    /// How much ln(seconds) rises per unit of score.
    slope: f64,
    /// The mean of what the score leaves over.
    mean: f64,
    /// How probable it is after the measurements.
    pub(super) weight: f64,
    pub(super) fit: Fit,
}

/// What predictions rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Basis {
    /// Number of distinct configurations that teach.
    pub learned: usize,
    /// Whether the measured times reverse the order of the scores by more than chance. The scores then count for nothing.
    pub contradicts: bool,
    /// Standard deviation of the ln(seconds) of a run.
    pub noise: f64,
    /// Kendall's tau of the measured times and what the other measurements predict.
    pub left_out_tau: f64,
    /// Kendall's tau of the measured times and the model's scores.
    pub score_tau: f64,
    /// Whether predictions rest on scores, too.
    pub uses_scores: bool,
    /// Mean of the measured ln(seconds).
    pub mean_time: f64,
}

/// What is predicted of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// ln(seconds); infinity if the configuration failed.
    pub log_seconds: f64,
    /// Standard deviation of the ln(seconds) of a run.
    pub deviation: f64,
}

/// Maximum number of rows of the matrices that learning takes, since it takes time with the cube of it. If there are more
/// measurements than this and more columns, then as many teach.
pub const MAX_SIZE: usize = 300;

/// Number of tables that have an order of each tensor of every measured configuration.
const TABLES: usize = 6;

/// How many deviations of chance the measured times have to reverse the order of the scores by.
const SURE: f64 = 2.0;

impl AdaptedModel {
    /// Learns from measurements. Returns `None` if they say nothing: fewer than three configurations, or equal times.
    pub fn new(prior: Prior, mut measurements: Measurements) -> Option<Self> {
        if !measurements.teach() {
            return None;
        }
        let fastest = measurements.fastest();
        let mean_time = mean(&measurements.times);
        let mut known = Vec::new();
        let mut slow_side = None;
        if !measurements.points[0].columns.is_empty() {
            // What is known comes before times are compressed and some of them left out.
            let points = measurements.points.iter().cloned();
            known = points.zip(measurements.times.iter().copied()).collect();
            measurements = measurements.with_failures_slow().at_most(MAX_SIZE);
            // What takes the place of scores expects slow times as they are.
            if !measurements.scores_differ() {
                slow_side = Some(SlowSide::compress(&mut measurements.times));
            }
        }
        let mut kernel = Kernel::new(&measurements, prior);
        // Only the kernel knows its size, because many measurements may have few columns.
        if kernel.size() > MAX_SIZE {
            measurements = measurements.at_most(MAX_SIZE);
            kernel = Kernel::new(&measurements, prior);
        }
        let times = &measurements.times;
        let score_tau = measurements.tau_of_scores();
        let contradicts = score_tau < -SURE * variance_by_chance(times.len()).sqrt();
        let hypotheses = hypotheses(&kernel, &measurements, prior, !contradicts);
        // The ln(seconds) of each configuration that the measurements of the others predict.
        let mut predicted = times.clone();
        for each in &hypotheses {
            for (time, error) in predicted.iter_mut().zip(each.fit.left_out()) {
                *time -= each.weight * error;
            }
        }
        let noises = hypotheses.iter().map(|each| each.weight * each.fit.noise);
        let run_variances = hypotheses
            .iter()
            .map(|Hypothesis { weight, fit, .. }| weight * fit.noise * fit.widening * fit.widening);
        Some(Self {
            basis: Basis {
                learned: times.len(),
                contradicts,
                noise: noises.sum::<f64>().sqrt(),
                left_out_tau: tau(times, &predicted),
                score_tau,
                uses_scores: hypotheses.iter().any(|each| each.slope > 0.0),
                mean_time,
            },
            run_variance: run_variances.sum(),
            effects: effects(&kernel, &hypotheses),
            slow_side,
            known,
            hypotheses,
            fastest,
            failed: measurements.failed,
            kernel,
        })
    }

    /// Bytes that it takes, given those of an order of dimensions in each of its tables.
    pub fn bytes(&self) -> usize {
        let size = self.kernel.size();
        let points = self.known.iter().map(|(point, _)| point);
        let points = Point::bytes(points.chain(&self.failed));
        let tables = self.basis.learned * TABLES * (1 + self.kernel.measured_with.len());
        size_of::<f64>() * (2 * size * size + tables) + points
    }

    /// What the entries of a batch of layouts add to the mean of ln(seconds); `None` if tiles were measured.
    pub fn layout_means(&self, batch: &LayoutBatch) -> Option<LayoutMeans> {
        Some(LayoutMeans::new(
            self.effects.as_ref()?,
            &self.failed,
            batch,
        ))
    }

    /// The ln(seconds) that [`Self::predict`] predicts, in a fraction of its time.
    pub fn predict_mean(&self, point: &Point) -> f64 {
        if let Some(measured) = self.measured(point) {
            return measured;
        }
        if let Some(effects) = &self.effects {
            return self.restored(effects.of_point(point));
        }
        let scaled = self.kernel.scaled(point);
        let means = self.hypotheses.iter().map(|each| {
            let mean = each.fit.mean(&self.kernel, &scaled);
            each.weight * (mean + each.mean_of(point))
        });
        self.restored(means.sum())
    }

    /// The measured ln(seconds) of a configuration, which then is not predicted; infinity if it failed.
    fn measured(&self, point: &Point) -> Option<f64> {
        let mut failed = self.failed.iter();
        if failed.any(|failed| failed.is_same_configuration(point)) {
            return Some(f64::INFINITY);
        }
        let found = self
            .known
            .binary_search_by(|(known, _)| known.compare_configuration(point));
        Some(self.known[found.ok()?].1)
    }

    /// What a prediction of compressed slow times means.
    fn restored(&self, log_seconds: f64) -> f64 {
        self.slow_side
            .map_or(log_seconds, |slow| slow.restore(log_seconds))
    }

    /// Predicts ln(seconds) of a configuration.
    pub fn predict(&self, point: &Point) -> Prediction {
        if let Some(log_seconds) = self.measured(point) {
            let is_time = log_seconds.is_finite();
            return Prediction {
                log_seconds,
                deviation: if is_time { self.basis.noise } else { 0.0 },
            };
        }
        let normal = self.posterior(point);
        // Effects are the same mean, added up as `predict_mean` and tables of a batch add it up, so
        // that the bits are equal.
        let effects = self.effects.as_ref();
        let log_seconds = effects.map_or(normal.mean, |effects| effects.of_point(point));
        Prediction {
            log_seconds: self.restored(log_seconds),
            deviation: (normal.variance + self.run_variance).sqrt(),
        }
    }

    /// The distribution of the mean ln(seconds) of a configuration that was not measured.
    pub fn expect(&self, point: &Point) -> Normal {
        Normal {
            mean: self.predict_mean(point),
            ..self.posterior(point)
        }
    }

    /// The distribution of the mean ln(seconds) of a configuration, over all hypotheses.
    fn posterior(&self, point: &Point) -> Normal {
        let scaled = self.kernel.scaled(point);
        let under = self.hypotheses.iter();
        Normal::mixture(under.map(|each| (each.weight, each.predict(&self.kernel, point, &scaled))))
    }
}

impl Hypothesis {
    /// The mean before anything is measured.
    pub(super) fn mean_of(&self, point: &Point) -> f64 {
        self.mean + self.slope * point.score
    }

    /// The mean ln(seconds), and its widened variance.
    fn predict(&self, kernel: &Kernel, point: &Point, scaled: &ScaledPoint) -> Normal {
        let related = self.fit.relate(kernel, scaled);
        let normal = self.fit.predict(kernel, scaled, &related);
        let widening = self.fit.widening;
        Normal {
            mean: normal.mean + self.mean_of(point),
            variance: normal.variance * widening * widening,
        }
    }
}

/// The hypotheses after the measurements: that scores count, if they may, and that they do not, if that is in doubt.
fn hypotheses(
    kernel: &Kernel,
    measurements: &Measurements,
    prior: Prior,
    scores_may_count: bool,
) -> Vec<Hypothesis> {
    let gram;
    // All hypotheses have one covariance, which is made once, because it takes the time.
    let covariance: &dyn Covariance = if let Some(columns) = &kernel.columns {
        columns
    } else {
        gram = kernel.gram();
        &gram
    };
    let scores_count = scores_may_count && measurements.scores_differ();
    let with_scores = scores_count.then_some(prior.slope);
    let without = (!scores_count || prior.doubt > 0.0).then_some(0.0);
    let slopes = with_scores.into_iter().chain(without);
    let hypotheses = slopes.zip([1.0 - prior.doubt, prior.doubt]);
    let hypotheses = hypotheses.map(|(slope, weight)| {
        let residuals = measurements.beside_scores(slope);
        let mean = mean(&residuals);
        let residuals = centered(residuals);
        let counts = &measurements.counts;
        let fit = Fit::new(kernel, covariance, &residuals, counts, prior.spread);
        Hypothesis {
            slope,
            mean,
            weight,
            fit,
        }
    });
    let mut hypotheses: Vec<Hypothesis> = hypotheses.collect();
    // Relative to the largest, since likelihoods themselves are too small for a number.
    let evidence = hypotheses.iter().map(|each| each.fit.evidence);
    let best = evidence.fold(f64::NEG_INFINITY, f64::max);
    for each in &mut hypotheses {
        each.weight *= libm::exp(each.fit.evidence - best);
    }
    let total: f64 = hypotheses.iter().map(|each| each.weight).sum();
    for each in &mut hypotheses {
        each.weight /= total;
    }
    hypotheses
}

/// Adds up the hypotheses' means of layouts.
fn effects(kernel: &Kernel, hypotheses: &[Hypothesis]) -> Option<Effects> {
    if kernel.measured_with.is_empty() {
        return None;
    }
    let mut constant = 0.0;
    let mut slope = 0.0;
    for each in hypotheses {
        let fit = &each.fit;
        // What a line in the score adds per unit of the model's score, and at a score of 0: scores count from their mean.
        let scores = kernel.measured.iter().zip(&fit.weights);
        let rise = scores
            .map(|(each, weight)| each.score * weight)
            .sum::<f64>()
            / kernel.score_unit;
        let start = -rise * kernel.mean_score;
        let offset = fit.offset * fit.weights.iter().sum::<f64>();
        let of_score = fit.variances[0];
        constant += each.weight * (each.mean + offset + of_score * start);
        slope += each.weight * (each.slope + of_score * rise);
    }
    // What a measured configuration adds to the mean of those that are equal in a group.
    let effect = |group: usize, number: usize| -> f64 {
        let of_each = hypotheses.iter();
        of_each
            .map(|Hypothesis { weight, fit, .. }| {
                weight * fit.variances[group] * fit.weights[number]
            })
            .sum()
    };
    let tensors = (kernel.dense()..).zip(&kernel.measured_with);
    let tensors = tensors.map(|(group, with)| {
        let sum = |numbers: &[usize]| numbers.iter().map(|&number| effect(group, number)).sum();
        let orders = with.iter();
        orders
            .map(|(&order, numbers)| (order, sum(numbers)))
            .collect()
    });
    Some(Effects {
        constant,
        slope,
        tensors: tensors.collect(),
    })
}

#[cfg(test)]
mod tests;
