use std::mem::take;

use super::{
    covariance::{Covariance, Covariances, Posterior, Solution, Variances},
    kernel::{Kernel, ScaledPoint},
    linear_algebra::{dot, variance},
};
use crate::statistics::{Normal, scalar};

/// The Gaussian process after the measurements, around a given mean.
pub(super) struct Fit {
    /// The variance of each dense group and tensor of the kernel.
    pub(super) variances: Vec<f64>,
    /// The variance of a common offset.
    pub(super) offset: f64,
    /// `[measured]` the variance of each measurement.
    #[cfg(test)]
    pub(super) noises: Vec<f64>,
    /// The variance of one run.
    pub(super) noise: f64,
    /// `[measured]` A⁻¹ times the residuals.
    pub(super) weights: Vec<f64>,
    /// `[measured]` the diagonal of A⁻¹.
    precisions: Vec<f64>,
    posterior: Posterior,
    /// ln of how likely the measurements are.
    pub(super) evidence: f64,
    /// What deviations are multiplied by, since they are too small where the model is wrong.
    pub(super) widening: f64,
}

/// Degrees of freedom of the noise's Student-t distribution.
const FREEDOM: f64 = 3.0;

/// Minimum standard deviation of a measurement, relative to its time.
const MIN_NOISE: f64 = 2e-4;

/// Variance of the common offset over the total variance.
const OFFSET: f64 = 30.0;

/// Number of steps from variances that are nearly right.
const STEPS_FROM_EXPECTED: usize = 3;

/// How much a score's slope may differ, relative to it.
const SLOPE_DIFFERS: f64 = 0.3;

/// Leave-one-out residuals are expected to be this many deviations, which counts as much as this many measurements.
const EXPECTED_WIDTH: (f64, f64) = (1.5, 5.0);

impl Fit {
    /// Learns the variances from the residuals of the measured configurations, given the number of runs of each; `spread` is the
    /// expected deviation of residuals. Each step of majorization and minimization makes the residuals more likely.
    pub(super) fn new(
        kernel: &Kernel,
        covariance: &dyn Covariance,
        residuals: &[f64],
        counts: &[f64],
        spread: f64,
    ) -> Self {
        let total = variance(residuals, spread);
        let family = total / scalar(kernel.families());
        let mut expected = vec![family; kernel.dense()];
        expected.resize(
            kernel.dense() + kernel.partitions.all.len(),
            family / scalar(kernel.measured_with.len().max(1)),
        );
        let (mut groups, mut noise, steps) = match &kernel.scale {
            // The variances that were learned together with the scale are nearly right.
            Some((_, learned)) => {
                let of_score = (SLOPE_DIFFERS * spread).powi(2);
                let groups = vec![of_score, learned.amplitude];
                (groups, learned.noise, STEPS_FROM_EXPECTED)
            }
            // Few measurements would be overfitted by many steps, and many take time for each.
            None => (
                expected.clone(),
                total / 10.0,
                (residuals.len() / 4).clamp(4, 30),
            ),
        };
        let offset = OFFSET * total;
        // How much each measurement is trusted: less than 1 if it lies far off.
        let mut trust = vec![1.0; residuals.len()];
        let noises_of = |noise: f64, trust: &[f64]| -> Vec<f64> {
            let noise = noise + MIN_NOISE * MIN_NOISE;
            let trusted = counts.iter().zip(trust);
            trusted
                .map(|(count, trust)| noise / (count * trust))
                .collect()
        };
        let solve = |groups: &[f64], noises: &[f64]| {
            let variances = Variances {
                groups,
                offset,
                noises,
            };
            covariance.solve(&variances, residuals)
        };
        for _ in 0..steps {
            let noises = noises_of(noise, &trust);
            let solution = solve(&groups, &noises);
            // Where the likelihood is largest, product and trace are equal. The reciprocal of the
            // expected variance is a penalty on larger ones.
            let explained = solution
                .products
                .iter()
                .zip(&solution.traces)
                .zip(&expected);
            for (group, ((product, trace), expected)) in groups.iter_mut().zip(explained) {
                *group *= (product / (trace + expected.recip())).max(0.0).sqrt();
            }
            let mut product = 0.0;
            // The penalty is that of an expected variance of ten times the total, and so a weak one.
            let mut trace = 0.1 / total;
            for (place, weight) in solution.weights.iter().enumerate() {
                let share = (counts[place] * trust[place]).recip();
                product += weight * weight * share;
                trace += solution.precisions[place] * share;
            }
            noise *= (product / trace).sqrt();
            // This is a step of expectation and maximization for a Student-t distribution: the trust in
            // a measurement falls with its expected squared error, in units of the noise's variance.
            let solved = solution.weights.iter().zip(&solution.precisions);
            for ((trust, own), (weight, precision)) in trust.iter_mut().zip(&noises).zip(solved) {
                let error = own * weight;
                let uncertain = own * (1.0 - own * precision);
                let squared = (error * error + uncertain.max(0.0)) / (own * *trust);
                *trust = (FREEDOM + 1.0) / (FREEDOM + squared);
            }
        }
        let noises = noises_of(noise, &trust);
        let mut solution = solve(&groups, &noises);
        let likelihood = dot(residuals, &solution.weights) + solution.log_determinant;
        Self {
            variances: kernel.of_tensors(&groups),
            offset,
            noise: noise + MIN_NOISE * MIN_NOISE,
            // The constant term is left out, because it is the same under every hypothesis.
            evidence: -0.5 * likelihood,
            widening: widening(&solution),
            weights: take(&mut solution.weights),
            precisions: take(&mut solution.precisions),
            posterior: solution.posterior(),
            #[cfg(test)]
            noises,
        }
    }

    /// How the measurements see a configuration.
    pub(super) fn relate(&self, kernel: &Kernel, scaled: &ScaledPoint) -> Covariances {
        let relations = kernel.relations(scaled, &self.variances, self.offset);
        self.posterior.relate(relations)
    }

    /// Mean of a configuration, relative to the mean that the residuals are of. It takes time with the number of measurements, and a
    /// variance with its square.
    pub(super) fn mean(&self, kernel: &Kernel, scaled: &ScaledPoint) -> f64 {
        let relations = kernel.relations(scaled, &self.variances, self.offset);
        self.posterior.mean(&relations)
    }

    /// Mean and variance of a configuration, relative to the mean that the residuals are of, and without noise.
    pub(super) fn predict(
        &self,
        kernel: &Kernel,
        scaled: &ScaledPoint,
        related: &Covariances,
    ) -> Normal {
        let variance = self.covariance(kernel, (scaled, related), (scaled, related));
        Normal {
            mean: related.mean,
            // Rounding may leave less than nothing.
            variance: variance.max(0.0),
        }
    }

    /// The variance of a configuration before anything is measured.
    pub(super) fn variance_before(&self, kernel: &Kernel, scaled: &ScaledPoint) -> f64 {
        kernel.between(scaled, scaled, &self.variances) + self.offset
    }

    /// The covariance of two configurations.
    pub(super) fn covariance(
        &self,
        kernel: &Kernel,
        one: (&ScaledPoint, &Covariances),
        other: (&ScaledPoint, &Covariances),
    ) -> f64 {
        let before = kernel.between(one.0, other.0, &self.variances) + self.offset;
        before - self.posterior.lowered(one.1, other.1)
    }

    /// `[measured]` how far each measurement is from what the others predict.
    pub(super) fn left_out(&self) -> impl Iterator<Item = f64> + '_ {
        let solved = self.weights.iter().zip(&self.precisions);
        solved.map(|(weight, precision)| weight / precision)
    }
}

fn widening(solution: &Solution) -> f64 {
    // Each leave-one-out residual `weight / precision` has the variance `1 / precision`. If the
    // model is right, the squares of their quotients are 1 on average.
    let (width, count) = EXPECTED_WIDTH;
    let solved = solution.weights.iter().zip(&solution.precisions);
    let squares = solved.map(|(weight, precision)| weight * weight / precision);
    let all = count + scalar(solution.weights.len());
    let mean = (count * width * width + squares.sum::<f64>()) / all;
    mean.sqrt().max(1.0)
}
