use super::linear_algebra::{Factor, TriangleOfEights, dot};

/// The covariance A of the measured configurations, in a form that makes it cheap to solve.
pub(super) trait Covariance {
    /// Number of groups whose variance is learned: dense groups come first, then partitions.
    fn groups(&self) -> usize;

    /// Solves A for the residuals.
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution;

    /// Returns what predicts other configurations, given the means and the factor of a solution.
    fn posterior(&self, variances: &Variances<'_>, means: Vec<f64>, factor: Factor) -> Posterior;
}

/// What A consists of.
pub(super) struct Variances<'a> {
    /// The variance of each group.
    pub(super) groups: &'a [f64],
    /// The variance of a common offset.
    pub(super) offset: f64,
    /// `[measured]` the variance of each measurement's noise.
    pub(super) noises: &'a [f64],
}

/// A, solved for the residuals r.
pub(super) struct Solution {
    /// `[measured]` A⁻¹r.
    pub(super) weights: Vec<f64>,
    /// `[measured]` the diagonal of A⁻¹.
    pub(super) precisions: Vec<f64>,
    /// ln |A|.
    pub(super) log_determinant: f64,
    /// Per group.
    pub(super) explained: Vec<ExplainedVariance>,
    /// `[relations]` what gives the mean of a configuration when it is multiplied with its relations.
    pub(super) means: Vec<f64>,
    pub(super) factor: Factor,
}

/// How much of the residuals one member of a group explains. K is how alike the measured configurations are in it.
pub(super) struct ExplainedVariance {
    /// weightsᵀ·K·weights.
    pub(super) product: f64,
    /// The trace of A⁻¹K.
    pub(super) trace: f64,
}

impl ExplainedVariance {
    /// Those of the groups, given their products and traces.
    pub(super) fn of_groups(
        products: impl IntoIterator<Item = f64>,
        traces: impl IntoIterator<Item = f64>,
    ) -> Vec<Self> {
        let groups = products.into_iter().zip(traces);
        groups
            .map(|(product, trace)| Self { product, trace })
            .collect()
    }
}

/// What predicts a configuration from how it is related to the measured ones.
pub(super) struct Posterior {
    /// `[relations]` what gives the mean.
    pub(super) means: Vec<f64>,
    pub(super) triangle: TriangleOfEights,
    /// `[relations]` the variance of each, if relations are columns; empty if they are covariances.
    pub(super) of_columns: Vec<f64>,
}

/// A configuration as the measurements see it.
pub(super) struct Covariances {
    pub(super) mean: f64,
    /// Its relations, if they are columns.
    columns: Vec<f64>,
    reduced: Vec<f64>,
}

impl Posterior {
    pub(super) fn relate(&self, relations: Vec<f64>) -> Covariances {
        Covariances {
            mean: self.mean(&relations),
            reduced: self.triangle.reduce(&relations),
            columns: if self.of_columns.is_empty() {
                Vec::new()
            } else {
                relations
            },
        }
    }

    /// The mean of a configuration by its relations to the measured ones.
    pub(super) fn mean(&self, relations: &[f64]) -> f64 {
        dot(relations, &self.means)
    }

    /// By how much the measurements lower the covariance of two configurations. Of columns, the reduced relations give what is
    /// left of their covariance, and those of covariances what it falls by.
    pub(super) fn lowered(&self, one: &Covariances, other: &Covariances) -> f64 {
        let reduced = dot(&one.reduced, &other.reduced);
        if self.of_columns.is_empty() {
            return reduced;
        }
        let columns = one.columns.iter().zip(&other.columns);
        columns
            .zip(&self.of_columns)
            .map(|((one, other), variance)| one * other * variance)
            .sum::<f64>()
            - reduced
    }
}
