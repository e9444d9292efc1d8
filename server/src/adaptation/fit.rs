use super::{
    kernel::{ExpectedVariances, Kernel, ScaledPoint},
    linear_algebra::{dot, scalar},
    normal::{Normal, variance},
    solution::{Covariance, Covariances, ExplainedVariance, Posterior, Solution, Variances},
};

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
    pub(super) posterior: Posterior,
    /// ln of how likely the measurements are.
    pub(super) evidence: f64,
    /// What deviations are multiplied by, since they are too small where the model is wrong.
    pub(super) widening: f64,
}

/// The variances that are learned.
struct Learning<'a> {
    covariance: &'a dyn Covariance,
    /// `[measured]` what is to be explained.
    residuals: &'a [f64],
    /// `[measured]` number of runs.
    counts: &'a [f64],
    /// What is expected of each group.
    expected: Vec<f64>,
    groups: Vec<f64>,
    noise: f64,
    total: f64,
    /// `[measured]` how much each measurement is trusted: less than 1 if it lies far off.
    trust: Vec<f64>,
}

/// Degrees of freedom of the noise's Student-t distribution.
const FREEDOM: f64 = 3.0;

/// Minimum standard deviation of a measurement, relative to its time.
const MIN_NOISE: f64 = 2e-4;

/// Variance of the common offset over the total variance.
const OFFSET: f64 = 30.0;

/// Number of steps from variances that are nearly right.
const STEPS_FROM_EXPECTED: usize = 3;

/// Leave-one-out residuals are expected to be this many deviations, which counts as much as this many measurements.
const EXPECTED_WIDTH: (f64, f64) = (1.5, 5.0);

impl Fit {
    /// Learns the variances from the residuals of the measured configurations; `spread` is their expected deviation.
    pub(super) fn of(
        kernel: &Kernel,
        covariance: &dyn Covariance,
        residuals: &[f64],
        counts: &[f64],
        spread: f64,
    ) -> Self {
        let mut learning = Learning::of(kernel, covariance, residuals, counts, spread);
        let steps = learning.begin(kernel.expected());
        for _ in 0..steps {
            learning.improve();
        }
        learning.fit(kernel)
    }

    /// How the measurements see a configuration.
    pub(super) fn relate(&self, kernel: &Kernel, scaled: &ScaledPoint) -> Covariances {
        self.posterior.relate(self.relations(kernel, scaled))
    }

    fn relations(&self, kernel: &Kernel, scaled: &ScaledPoint) -> Vec<f64> {
        kernel.relations(scaled, &self.variances, self.offset)
    }

    /// Mean of a configuration, relative to the mean that the residuals are of. It takes time with the number of measurements, and a
    /// variance with its square.
    pub(super) fn mean(&self, kernel: &Kernel, scaled: &ScaledPoint) -> f64 {
        self.posterior.mean(&self.relations(kernel, scaled))
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

impl<'a> Learning<'a> {
    fn of(
        kernel: &Kernel,
        covariance: &'a dyn Covariance,
        residuals: &'a [f64],
        counts: &'a [f64],
        spread: f64,
    ) -> Self {
        let total = variance(residuals, spread);
        let family = total / scalar(kernel.families());
        let mut expected = vec![family; kernel.dense()];
        expected.resize(
            covariance.groups(),
            family / scalar(kernel.tensors().max(1)),
        );
        Self {
            covariance,
            residuals,
            counts,
            groups: expected.clone(),
            expected,
            noise: total / 10.0,
            total,
            trust: vec![1.0; residuals.len()],
        }
    }

    /// Begins with variances that are nearly right, if there are some. Returns the number of steps
    /// that are left to take.
    fn begin(&mut self, expected: Option<ExpectedVariances>) -> usize {
        let Some(expected) = expected else {
            // Few measurements would be overfitted by many steps, and many take time for each.
            return (self.residuals.len() / 4).clamp(4, 30);
        };
        self.groups = vec![expected.score, expected.columns];
        self.noise = expected.noise;
        STEPS_FROM_EXPECTED
    }

    /// The variance of each measurement.
    fn noises(&self) -> Vec<f64> {
        let noise = self.noise + MIN_NOISE * MIN_NOISE;
        let trusted = self.counts.iter().zip(&self.trust);
        trusted
            .map(|(count, trust)| noise / (count * trust))
            .collect()
    }

    fn variances<'b>(&'b self, noises: &'b [f64]) -> Variances<'b> {
        Variances {
            groups: &self.groups,
            offset: OFFSET * self.total,
            noises,
        }
    }

    /// Takes one step of majorization and minimization towards the variances that make the residuals most likely.
    fn improve(&mut self) {
        let noises = self.noises();
        let variances = self.variances(&noises);
        let solution = self.covariance.solve(&variances, self.residuals);
        // The trust changes last, because the solution follows from that before.
        self.improve_groups(&solution.explained);
        self.improve_noise(&solution);
        self.trust_less(&noises, &solution);
    }

    fn improve_groups(&mut self, explained: &[ExplainedVariance]) {
        // Where the likelihood is largest, product and trace are equal. The reciprocal of the
        // expected variance is a penalty on larger ones.
        let expected = self.expected.iter().zip(explained);
        for (group, (expected, explained)) in self.groups.iter_mut().zip(expected) {
            let ratio = explained.product / (explained.trace + expected.recip());
            *group *= ratio.max(0.0).sqrt();
        }
    }

    fn improve_noise(&mut self, solution: &Solution) {
        let mut product = 0.0;
        // The penalty is that of an expected variance of ten times the total, and so a weak one.
        let mut trace = 0.1 / self.total;
        for (place, weight) in solution.weights.iter().enumerate() {
            let share = (self.counts[place] * self.trust[place]).recip();
            product += weight * weight * share;
            trace += solution.precisions[place] * share;
        }
        self.noise *= (product / trace).sqrt();
    }

    /// Trusts measurements less that noise is unlikely to explain.
    fn trust_less(&mut self, noises: &[f64], solution: &Solution) {
        let solved = solution.weights.iter().zip(&solution.precisions);
        // This is a step of expectation and maximization for a Student-t distribution: the trust in
        // a measurement falls with its expected squared error, in units of the noise's variance.
        for ((trust, noise), (weight, precision)) in self.trust.iter_mut().zip(noises).zip(solved) {
            let error = noise * weight;
            let uncertain = noise * (1.0 - noise * precision);
            let squared = (error * error + uncertain.max(0.0)) / (noise * *trust);
            *trust = (FREEDOM + 1.0) / (FREEDOM + squared);
        }
    }

    fn fit(self, kernel: &Kernel) -> Fit {
        let noises = self.noises();
        let variances = self.variances(&noises);
        let solved = self.covariance.solve(&variances, self.residuals);
        let likelihood = dot(self.residuals, &solved.weights) + solved.log_determinant;
        Fit {
            variances: kernel.of_tensors(&self.groups),
            offset: variances.offset,
            noise: self.noise + MIN_NOISE * MIN_NOISE,
            // The constant term is left out, because it is the same under every hypothesis.
            evidence: -0.5 * likelihood,
            widening: widening(&solved.weights, &solved.precisions),
            posterior: self
                .covariance
                .posterior(&variances, solved.means, solved.factor),
            weights: solved.weights,
            precisions: solved.precisions,
            #[cfg(test)]
            noises,
        }
    }
}

fn widening(weights: &[f64], precisions: &[f64]) -> f64 {
    // Each leave-one-out residual `weight / precision` has the variance `1 / precision`. If the
    // model is right, the squares of their quotients are 1 on average.
    let (width, count) = EXPECTED_WIDTH;
    let solved = weights.iter().zip(precisions);
    let squares = solved.map(|(weight, precision)| weight * weight / precision);
    let mean = (count * width * width + squares.sum::<f64>()) / (count + scalar(weights.len()));
    mean.sqrt().max(1.0)
}
