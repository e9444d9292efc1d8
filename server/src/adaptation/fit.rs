use super::{
    gram::Gram,
    kernel::{Kernel, Scaled},
    linear_algebra::{Factor, dot},
};

/// The Gaussian process after the measurements, around a given mean.
pub(super) struct Fit {
    /// The variance of each group.
    pub(super) variances: Vec<f64>,
    /// The variance of a common offset.
    pub(super) offset: f64,
    /// `[measured]` the variance of each measurement.
    #[cfg(test)]
    pub(super) noises: Vec<f64>,
    /// The variance of one run.
    pub(super) noise: f64,
    factor: Factor,
    /// `[measured]` A⁻¹ times the residuals.
    pub(super) weights: Vec<f64>,
    /// `[measured]` the diagonal of A⁻¹.
    precisions: Vec<f64>,
    /// ln of how likely the measurements are.
    pub(super) evidence: f64,
    /// What deviations are multiplied by, since they are too small where the model is wrong.
    pub(super) widening: f64,
}

/// The variances that are learned.
struct Variances<'a> {
    gram: &'a Gram,
    /// `[measured]` what is to be explained.
    residuals: &'a [f64],
    /// `[measured]` number of runs.
    counts: &'a [f64],
    /// What is expected of each group of the Gram matrix.
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

/// Leave-one-out residuals are expected to be this many deviations, which counts as much as this many measurements.
const EXPECTED_WIDTH: (f64, f64) = (1.5, 5.0);

impl Fit {
    /// Learns the variances from the residuals of the measured configurations; `spread` is their expected deviation.
    pub(super) fn of(kernel: &Kernel, gram: &Gram, residuals: &[f64], counts: &[f64], spread: f64) -> Self {
        let mut variances = Variances::of(kernel, gram, (residuals, counts), spread);
        for _ in 0..(residuals.len() / 4).clamp(4, 30) {
            variances.improve();
        }
        variances.fit()
    }

    /// Mean and variance of a configuration, relative to the mean that the residuals are of, and without noise.
    pub(super) fn predict(&self, kernel: &Kernel, scaled: &Scaled) -> (f64, f64) {
        let (mean, variance, _) = self.posterior(kernel, scaled);
        (mean, variance)
    }

    /// The same, and L⁻¹ times the covariances with the measured configurations.
    pub(super) fn posterior(&self, kernel: &Kernel, scaled: &Scaled) -> (f64, f64, Vec<f64>) {
        let mut covariances = kernel.covariances(scaled, &self.variances);
        for covariance in &mut covariances {
            *covariance += self.offset;
        }
        let reduced = self.factor.reduce(&covariances);
        let before = kernel.variance(scaled, &self.variances) + self.offset;
        (dot(&covariances, &self.weights), (before - dot(&reduced, &reduced)).max(0.0), reduced)
    }

    /// `[measured]` how far each measurement is from what the others predict.
    pub(super) fn left_out(&self) -> impl Iterator<Item = f64> + '_ {
        self.weights.iter().zip(&self.precisions).map(|(weight, precision)| weight / precision)
    }
}

impl<'a> Variances<'a> {
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^53 measurements and groups")]
    fn of(kernel: &Kernel, gram: &'a Gram, (residuals, counts): (&'a [f64], &'a [f64]), spread: f64) -> Self {
        let total = (spread * spread + dot(residuals, residuals)) / (1.0 + residuals.len() as f64);
        let family = total / kernel.families() as f64;
        let mut expected = vec![family; kernel.dense()];
        expected.resize(gram.groups(), family / kernel.tensors().max(1) as f64);
        let (groups, trust) = (expected.clone(), vec![1.0; residuals.len()]);
        Self { gram, residuals, counts, expected, groups, noise: total / 10.0, total, trust }
    }

    /// The variance of each measurement.
    fn noises(&self) -> Vec<f64> {
        let noise = self.noise + MIN_NOISE * MIN_NOISE;
        self.counts.iter().zip(&self.trust).map(|(count, trust)| noise / (count * trust)).collect()
    }

    fn factor(&self, noises: &[f64]) -> Factor {
        let mut matrix = self.gram.covariance(&self.groups);
        for value in &mut matrix {
            *value += OFFSET * self.total;
        }
        for (row, noise) in noises.iter().enumerate() {
            matrix[row * self.gram.size() + row] += noise;
        }
        Factor::of(matrix, self.gram.size())
    }

    /// Takes one step of majorization and minimization towards the variances that make the residuals most likely.
    fn improve(&mut self) {
        let size = self.gram.size();
        let noises = self.noises();
        let factor = self.factor(&noises);
        let (weights, inverse) = (factor.solve(self.residuals), factor.inverse());
        let explained = self.gram.weigh_products(&weights).into_iter().zip(self.gram.weigh(&inverse));
        for ((group, expected), (product, trace)) in self.groups.iter_mut().zip(&self.expected).zip(explained)
        {
            *group *= (product / (trace + expected.recip())).max(0.0).sqrt();
        }
        let (mut product, mut trace) = (0.0, 0.1 / self.total);
        for (place, weight) in weights.iter().enumerate() {
            let share = (self.counts[place] * self.trust[place]).recip();
            product += weight * weight * share;
            trace += inverse[place * size + place] * share;
        }
        self.trust_less(&noises, &weights, &inverse);
        self.noise *= (product / trace).sqrt();
    }

    /// Trusts measurements less that noise is unlikely to explain.
    fn trust_less(&mut self, noises: &[f64], weights: &[f64], inverse: &[f64]) {
        for (place, noise) in noises.iter().enumerate() {
            let error = noise * weights[place];
            let uncertain = noise * (1.0 - noise * inverse[place * noises.len() + place]);
            let squared = (error * error + uncertain.max(0.0)) / (noise * self.trust[place]);
            self.trust[place] = (FREEDOM + 1.0) / (FREEDOM + squared);
        }
    }

    fn fit(self) -> Fit {
        let noises = self.noises();
        let factor = self.factor(&noises);
        let (size, inverse) = (self.gram.size(), factor.inverse());
        let weights = factor.solve(self.residuals);
        let precisions: Vec<f64> = (0..size).map(|row| inverse[row * size + row]).collect();
        let evidence = -0.5 * (dot(self.residuals, &weights) + factor.log_determinant);
        let widening = widening(&weights, &precisions);
        let (offset, noise) = (OFFSET * self.total, self.noise + MIN_NOISE * MIN_NOISE);
        Fit {
            variances: self.gram.of_kernel(&self.groups),
            offset,
            #[cfg(test)]
            noises,
            noise,
            factor,
            weights,
            precisions,
            evidence,
            widening,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^53 measurements")]
fn widening(weights: &[f64], precisions: &[f64]) -> f64 {
    let (width, count) = EXPECTED_WIDTH;
    let squares = weights.iter().zip(precisions).map(|(weight, precision)| weight * weight / precision);
    let mean = (count * width * width + squares.sum::<f64>()) / (count + weights.len() as f64);
    mean.sqrt().max(1.0)
}
