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
    /// Probability that the slope of the score holds here, at most what the leave-one-out tau supports: 0 to 1.
    pub(crate) trust: f64,
    /// Whether the measured times reverse the order of the scores by more than chance. The scores then count for nothing.
    pub(crate) contradicts: bool,
    /// Standard deviation of the ln(seconds) of a run.
    pub(crate) noise: f64,
    /// Kendall's tau of the measured times and what the other measurements predict.
    pub(crate) left_out_tau: f64,
    /// Kendall's tau of the measured times and the model's scores.
    pub(crate) score_tau: f64,
}

/// What is predicted of a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prediction {
    /// ln(seconds); infinity if the configuration failed.
    pub(crate) log_seconds: f64,
    /// Standard deviation of the ln(seconds) of a run.
    pub(crate) deviation: f64,
}

/// Maximum number of rows of the matrices that learning takes, since it takes time with the cube of it. If there are more
/// measurements than this and more columns, then as many teach.
pub(crate) const MAX_SIZE: usize = 300;

/// Number of tables that have an order of each tensor of every measured configuration.
const TABLES: usize = 6;

/// How many deviations of chance the measured times have to reverse the order of the scores by, and how many more than the
/// leave-one-out tau a model may be trusted.
const SURE: f64 = 2.0;

impl AdaptedModel {
    /// Learns from measurements. Returns `None` if they say nothing: fewer than three configurations, or equal times.
    pub(crate) fn of(prior: Prior, mut measurements: Measurements) -> Option<Self> {
        if !measurements.teach() {
            return None;
        }
        let fastest = measurements.fastest();
        let mut slow_side = None;
        let mut known = Vec::new();
        if !measurements.points[0].columns.is_empty() {
            // What is known comes before times are compressed and some of them left out.
            known = measurements.known();
            (measurements, slow_side) = feature_set_lesson(measurements);
        }
        let mut kernel = Kernel::of(&measurements, prior);
        if kernel.size() > MAX_SIZE {
            measurements = measurements.at_most(MAX_SIZE);
            kernel = Kernel::of(&measurements, prior);
        }
        let score_tau = measurements.tau_of_scores();
        let chance = variance_by_chance(measurements.times.len()).sqrt();
        let contradicts = score_tau < -SURE * chance;
        let hypotheses = hypotheses(&kernel, &measurements, prior, contradicts);
        let basis = Basis {
            contradicts,
            score_tau,
            ..basis_of(&hypotheses, &measurements)
        };
        Some(Self {
            effects: effects(&kernel, &hypotheses),
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
        let of_known =
            |(point, _): &(Point, f64)| size_of::<(Point, f64)>() + size_of_val(&*point.columns);
        let known: usize = self.known.iter().map(of_known).sum();
        let numbers = 2 * size * size + learned * TABLES * (1 + self.kernel.tensors());
        size_of::<f64>() * numbers + known
    }

    /// What the entries of a batch of layouts add to the mean of ln(seconds); `None` if tiles were measured.
    pub(crate) fn layout_means(&self, batch: &LayoutBatch) -> Option<LayoutMeans> {
        Some(LayoutMeans::of(self.effects.as_ref()?, &self.failed, batch))
    }

    /// The ln(seconds) that [`Self::predict`] predicts, in a fraction of its time.
    pub(crate) fn predict_mean(&self, point: &Point) -> f64 {
        if self.has_failed(point) {
            return f64::INFINITY;
        }
        if let Some(log_seconds) = self.known(point) {
            return log_seconds;
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

    fn has_failed(&self, point: &Point) -> bool {
        let mut failed = self.failed.iter();
        failed.any(|failed| failed.is_same_configuration(point))
    }

    /// What a prediction of compressed slow times means.
    fn restored(&self, log_seconds: f64) -> f64 {
        self.slow_side
            .map_or(log_seconds, |slow| slow.restore(log_seconds))
    }

    pub(crate) fn predict(&self, point: &Point) -> Prediction {
        if self.has_failed(point) {
            return Prediction {
                log_seconds: f64::INFINITY,
                deviation: 0.0,
            };
        }
        if let Some(log_seconds) = self.known(point) {
            return Prediction {
                log_seconds,
                deviation: self.basis.noise,
            };
        }
        let scaled = self.kernel.scaled(point);
        let under = self.hypotheses.iter();
        let under = under.map(|each| (each.weight, each.predict(&self.kernel, point, &scaled)));
        let normal = Normal::mixture(&under.collect::<Vec<_>>());
        let effects = self.effects.as_ref();
        let log_seconds = effects.map_or(normal.mean, |effects| effects.of_point(point));
        Prediction {
            log_seconds: self.restored(log_seconds),
            deviation: normal.variance.sqrt(),
        }
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
        let times = measurements.times.iter().zip(&measurements.points);
        let residuals: Vec<f64> = times
            .map(|(time, point)| time - slope * point.score)
            .collect();
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

    /// Mean and widened variance of the ln(seconds) of a run.
    fn predict(&self, kernel: &Kernel, point: &Point, scaled: &ScaledPoint) -> Normal {
        let related = self.fit.relate(kernel, scaled);
        let normal = self.fit.predict(kernel, scaled, &related);
        let widening = self.fit.widening;
        Normal {
            mean: normal.mean + self.mean_of(point),
            variance: (normal.variance + self.fit.noise) * widening * widening,
        }
    }
}

/// What teaches of a feature set, and how its slow times count.
fn feature_set_lesson(measurements: Measurements) -> (Measurements, Option<SlowSide>) {
    let measurements = measurements.with_failures_slow().at_most(MAX_SIZE);
    // What takes the place of scores expects slow times as they are.
    if measurements.scores_differ() {
        return (measurements, None);
    }
    let slow = SlowSide::of(&measurements);
    (slow.compressed(measurements), Some(slow))
}

/// The hypotheses after the measurements: that scores count unless they are contradicted, and that they do not if that is in doubt.
fn hypotheses(
    kernel: &Kernel,
    measurements: &Measurements,
    prior: Prior,
    contradicts: bool,
) -> Vec<Hypothesis> {
    let slopes: &[f64] = if contradicts || !measurements.scores_differ() {
        &[0.0]
    } else if prior.doubt > 0.0 {
        &[prior.slope, 0.0]
    } else {
        &[prior.slope]
    };
    let gram;
    let covariance: &dyn Covariance = if let Some(columns) = kernel.columns() {
        columns
    } else {
        gram = Gram::of(kernel, kernel.partitions());
        &gram
    };
    let of_slope = |&slope| Hypothesis::of(slope, kernel, covariance, measurements, prior);
    let mut hypotheses: Vec<Hypothesis> = slopes.iter().map(of_slope).collect();
    weigh(&mut hypotheses, prior.doubt);
    hypotheses
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
        let fit = &each.fit;
        let (rise, start) = kernel.line(&fit.weights);
        let offset = fit.offset * fit.weights.iter().sum::<f64>();
        let of_score = fit.variances[0];
        constant += each.weight * (each.mean + offset + of_score * start);
        slope += each.weight * (each.slope + of_score * rise);
    }
    let of_configuration = |tensor, number: usize| {
        let group = kernel.dense() + tensor;
        let of =
            |each: &Hypothesis| each.weight * each.fit.variances[group] * each.fit.weights[number];
        hypotheses.iter().map(of).sum()
    };
    Some(Effects {
        constant,
        slope,
        tensors: kernel.by_order(of_configuration),
    })
}

fn basis_of(hypotheses: &[Hypothesis], Measurements { times, .. }: &Measurements) -> Basis {
    let mut predicted = times.clone();
    for each in hypotheses {
        for (time, error) in predicted.iter_mut().zip(each.fit.left_out()) {
            *time -= each.weight * error;
        }
    }
    let left_out_tau = tau(times, &predicted);
    let supported = left_out_tau + SURE * variance_by_chance(times.len()).sqrt();
    let with_score = hypotheses.iter().filter(|each| each.slope > 0.0);
    let believed: f64 = with_score.map(|each| each.weight).sum();
    let noises = hypotheses.iter().map(|each| each.weight * each.fit.noise);
    Basis {
        learned: times.len(),
        trust: believed.min(supported.clamp(0.0, 1.0)),
        noise: noises.sum::<f64>().sqrt(),
        left_out_tau,
        ..Basis::default()
    }
}

#[cfg(test)]
mod tests;
