use hlorank_graph::LayoutBatch;

use super::{
    LayoutMeans, Measurements, Point, Prior,
    effects::Effects,
    fit::Fit,
    gram::Gram,
    kendall::{tau, variance_by_chance},
    kernel::{Kernel, ScaledPoint},
    normal::Normal,
    slow_side::SlowSide,
    solution::Covariance,
};
use crate::statistics::{centered, mean};

/// A model of the run times of one graph on one target.
pub(crate) struct AdaptedModel {
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
    basis: Basis,
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
pub(crate) struct Basis {
    /// Number of distinct configurations that teach.
    pub(crate) learned: usize,
    /// Whether the measured times reverse the order of the scores by more than chance. The scores then count for nothing.
    pub(crate) contradicts: bool,
    /// Standard deviation of the ln(seconds) of a run.
    pub(crate) noise: f64,
    /// Kendall's tau of the measured times and what the other measurements predict.
    pub(crate) left_out_tau: f64,
    /// Kendall's tau of the measured times and the model's scores.
    pub(crate) score_tau: f64,
    /// Whether predictions rest on scores, too.
    pub(crate) uses_scores: bool,
    /// Mean of the measured ln(seconds).
    pub(crate) mean_time: f64,
}

/// What is predicted of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// ln(seconds); infinity if the configuration failed.
    pub(crate) log_seconds: f64,
    /// Standard deviation of the ln(seconds) of a run.
    pub(crate) deviation: f64,
}

/// Measurements as they teach.
struct Teaching {
    measurements: Measurements,
    /// As in [`AdaptedModel`].
    known: Vec<(Point, f64)>,
    /// How slow times were compressed, if they were.
    slow_side: Option<SlowSide>,
}

/// Maximum number of rows of the matrices that learning takes, since it takes time with the cube of it. If there are more
/// measurements than this and more columns, then as many teach.
pub(crate) const MAX_SIZE: usize = 300;

/// Number of tables that have an order of each tensor of every measured configuration.
const TABLES: usize = 6;

/// How many deviations of chance the measured times have to reverse the order of the scores by.
const SURE: f64 = 2.0;

impl AdaptedModel {
    /// Learns from measurements. Returns `None` if they say nothing: fewer than three configurations, or equal times.
    pub(crate) fn of(prior: Prior, measurements: Measurements) -> Option<Self> {
        if !measurements.teach() {
            return None;
        }
        let fastest = measurements.fastest();
        let mean_time = mean(&measurements.times);
        let Teaching {
            measurements,
            known,
            slow_side,
        } = Teaching::of(measurements);
        let (kernel, measurements) = bounded_kernel(measurements, prior);
        let score_tau = measurements.tau_of_scores();
        let chance = variance_by_chance(measurements.times.len()).sqrt();
        let contradicts = score_tau < -SURE * chance;
        let slopes = slopes(prior, !contradicts && measurements.scores_differ());
        let hypotheses = hypotheses(&kernel, &measurements, prior, slopes);
        let basis = Basis {
            contradicts,
            score_tau,
            mean_time,
            ..basis_of(&hypotheses, &measurements)
        };
        Some(Self {
            effects: effects(&kernel, &hypotheses),
            run_variance: hypotheses.iter().map(Hypothesis::run_variance).sum(),
            slow_side,
            known,
            hypotheses,
            fastest,
            failed: measurements.failed,
            basis,
            kernel,
        })
    }

    /// The measured ln(seconds) of a configuration of a feature set.
    fn known(&self, point: &Point) -> Option<f64> {
        let found = self
            .known
            .binary_search_by(|(known, _)| known.compare_configuration(point));
        Some(self.known[found.ok()?].1)
    }

    pub(crate) fn basis(&self) -> Basis {
        self.basis
    }

    /// Whether it tells how alike configurations are by their columns.
    pub(super) fn knows_columns(&self) -> bool {
        self.kernel.has_scale()
    }

    /// Bytes that it takes, given those of an order of dimensions in each of its tables.
    pub(super) fn bytes(&self) -> usize {
        let size = self.kernel.size();
        let learned = self.basis.learned;
        let points = self.known.iter().map(|(point, _)| point);
        let points = Point::bytes(points.chain(&self.failed));
        let numbers = 2 * size * size + learned * TABLES * (1 + self.kernel.tensors());
        size_of::<f64>() * numbers + points
    }

    /// What the entries of a batch of layouts add to the mean of ln(seconds); `None` if tiles were measured.
    pub(crate) fn layout_means(&self, batch: &LayoutBatch) -> Option<LayoutMeans> {
        Some(LayoutMeans::of(self.effects.as_ref()?, &self.failed, batch))
    }

    /// The ln(seconds) that [`Self::predict`] predicts, in a fraction of its time.
    pub(crate) fn predict_mean(&self, point: &Point) -> f64 {
        if let Some(measured) = self.measured(point) {
            return measured.log_seconds;
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

    /// What was measured of a configuration, which then is not predicted.
    fn measured(&self, point: &Point) -> Option<Prediction> {
        let mut failed = self.failed.iter();
        if failed.any(|failed| failed.is_same_configuration(point)) {
            return Some(Prediction {
                log_seconds: f64::INFINITY,
                deviation: 0.0,
            });
        }
        self.known(point).map(|log_seconds| Prediction {
            log_seconds,
            deviation: self.basis.noise,
        })
    }

    /// What a prediction of compressed slow times means.
    fn restored(&self, log_seconds: f64) -> f64 {
        self.slow_side
            .map_or(log_seconds, |slow| slow.restore(log_seconds))
    }

    pub(crate) fn predict(&self, point: &Point) -> Prediction {
        if let Some(measured) = self.measured(point) {
            return measured;
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
    pub(crate) fn expect(&self, point: &Point) -> Normal {
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
    fn of(
        slope: f64,
        kernel: &Kernel,
        covariance: &dyn Covariance,
        measurements: &Measurements,
        prior: Prior,
    ) -> Self {
        let residuals = measurements.beside_scores(slope);
        let mean = mean(&residuals);
        let residuals = centered(residuals);
        let counts = &measurements.counts;
        Self {
            slope,
            mean,
            weight: 0.0,
            fit: Fit::of(kernel, covariance, &residuals, counts, prior.spread),
        }
    }

    /// The mean before anything is measured.
    pub(super) fn mean_of(&self, point: &Point) -> f64 {
        self.mean + self.slope * point.score
    }

    /// What a unit of score adds to the mean of a configuration, and the mean at a score of 0, both
    /// without its orders.
    fn line(&self, kernel: &Kernel) -> (f64, f64) {
        let fit = &self.fit;
        let (rise, start) = kernel.line(&fit.weights);
        let offset = fit.offset * fit.weights.iter().sum::<f64>();
        let of_score = fit.variances[0];
        let start = self.mean + offset + of_score * start;
        (self.slope + of_score * rise, start)
    }

    /// What a measured configuration adds to the mean of those that are equal in a group.
    fn effect(&self, group: usize, number: usize) -> f64 {
        self.weight * self.fit.variances[group] * self.fit.weights[number]
    }

    /// What a run adds to the variance of a mixture.
    fn run_variance(&self) -> f64 {
        self.weight * self.fit.noise * self.fit.widening * self.fit.widening
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

impl Teaching {
    fn of(measurements: Measurements) -> Self {
        if measurements.points[0].columns.is_empty() {
            return Self::as_measured(measurements);
        }
        Self {
            // What is known comes before times are compressed and some of them left out.
            known: measurements.known(),
            ..Self::of_feature_set(measurements)
        }
    }

    fn of_feature_set(measurements: Measurements) -> Self {
        let measurements = measurements.with_failures_slow().at_most(MAX_SIZE);
        // What takes the place of scores expects slow times as they are.
        if measurements.scores_differ() {
            return Self::as_measured(measurements);
        }
        let slow_side = SlowSide::of(&measurements);
        Self {
            slow_side: Some(slow_side),
            ..Self::as_measured(slow_side.compressed(measurements))
        }
    }

    fn as_measured(measurements: Measurements) -> Self {
        Self {
            measurements,
            known: Vec::new(),
            slow_side: None,
        }
    }
}

/// The kernel of measurements, of which some are left out if learning from all would take too long.
fn bounded_kernel(measurements: Measurements, prior: Prior) -> (Kernel, Measurements) {
    let kernel = Kernel::of(&measurements, prior);
    // Only the kernel knows its size, because many measurements may have few columns.
    if kernel.size() <= MAX_SIZE {
        return (kernel, measurements);
    }
    let measurements = measurements.at_most(MAX_SIZE);
    (Kernel::of(&measurements, prior), measurements)
}

/// The hypotheses of these slopes after the measurements.
fn hypotheses(
    kernel: &Kernel,
    measurements: &Measurements,
    prior: Prior,
    slopes: Vec<f64>,
) -> Vec<Hypothesis> {
    let gram;
    let covariance: &dyn Covariance = if let Some(columns) = kernel.columns() {
        columns
    } else {
        gram = Gram::of(kernel, kernel.partitions());
        &gram
    };
    // All hypotheses have one covariance, which is made once, because it takes the time.
    let of_slope = |slope| Hypothesis::of(slope, kernel, covariance, measurements, prior);
    let mut hypotheses: Vec<Hypothesis> = slopes.into_iter().map(of_slope).collect();
    weigh(&mut hypotheses, prior.doubt);
    hypotheses
}

/// The slope of each hypothesis: that scores count if they count at all, and that they do not if
/// that is in doubt.
fn slopes(prior: Prior, scores_count: bool) -> Vec<f64> {
    let with_scores = scores_count.then_some(prior.slope);
    let without = (!scores_count || prior.doubt > 0.0).then_some(0.0);
    with_scores.into_iter().chain(without).collect()
}

/// Sets the probability of each hypothesis after the measurements, given that of the second one before them.
fn weigh(hypotheses: &mut [Hypothesis], doubt: f64) {
    // Relative to the largest, since likelihoods themselves are too small for a number.
    let evidence = hypotheses.iter().map(|each| each.fit.evidence);
    let best = evidence.fold(f64::NEG_INFINITY, f64::max);
    for (each, before) in hypotheses.iter_mut().zip([1.0 - doubt, doubt]) {
        each.weight = before * libm::exp(each.fit.evidence - best);
    }
    let total: f64 = hypotheses.iter().map(|each| each.weight).sum();
    for each in hypotheses {
        each.weight /= total;
    }
}

/// Adds up the hypotheses' means of layouts.
fn effects(kernel: &Kernel, hypotheses: &[Hypothesis]) -> Option<Effects> {
    if kernel.tensors() == 0 {
        return None;
    }
    let mut constant = 0.0;
    let mut slope = 0.0;
    for each in hypotheses {
        let (rise, start) = each.line(kernel);
        constant += each.weight * start;
        slope += each.weight * rise;
    }
    let value = |tensor: usize, number: usize| {
        let group = kernel.dense() + tensor;
        hypotheses
            .iter()
            .map(|each| each.effect(group, number))
            .sum()
    };
    Some(Effects {
        constant,
        slope,
        tensors: kernel.by_order(value),
    })
}

/// `[measured]` the ln(seconds) of each configuration that the measurements of the others predict.
fn left_out_predictions(hypotheses: &[Hypothesis], times: &[f64]) -> Vec<f64> {
    let mut predicted = times.to_vec();
    for each in hypotheses {
        for (time, error) in predicted.iter_mut().zip(each.fit.left_out()) {
            *time -= each.weight * error;
        }
    }
    predicted
}

fn basis_of(hypotheses: &[Hypothesis], Measurements { times, .. }: &Measurements) -> Basis {
    let predicted = left_out_predictions(hypotheses, times);
    let left_out_tau = tau(times, &predicted);
    let noises = hypotheses.iter().map(|each| each.weight * each.fit.noise);
    Basis {
        learned: times.len(),
        noise: noises.sum::<f64>().sqrt(),
        left_out_tau,
        uses_scores: hypotheses.iter().any(|each| each.slope > 0.0),
        ..Basis::default()
    }
}

#[cfg(test)]
mod tests;
