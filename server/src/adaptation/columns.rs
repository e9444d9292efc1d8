use std::{iter, ops::Range};

use hlorank_graph::pace;

use super::{
    linear_algebra::{Factor, diagonal},
    partitions::{Partition, Partitions},
    solution::{Covariance, ExplainedVariance, Posterior, Solution, Variances},
};

/// The measured configurations as rows of few columns: an offset, the score, and one column for each part of every
/// partition, which is 1 for the configurations of the part. Where there are fewer columns than measurements, this form is
/// the cheaper one.
///
/// A configuration is related to the measured ones by its own columns. Tensors of one partition share theirs: a column is
/// the fraction of them whose order is that of the part.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// `[measured]` the score in the units of the kernel.
    scores: Vec<f64>,
    /// `[measured, partitions]` the column of each configuration's part.
    of_parts: Vec<usize>,
    partitions: Vec<PartitionColumns>,
    size: usize,
}

/// One column for each part of a partition.
#[derive(Clone, Debug)]
struct PartitionColumns {
    columns: Range<usize>,
    /// Number of tensors that divide the configurations so.
    tensors: f64,
}

/// What Woodbury's identity takes, in the terms of [`Columns::solve`].
struct Woodbury<'a> {
    columns: &'a Columns,
    /// `[columns]` the diagonal of D.
    deviations: Vec<f64>,
    /// `[measured]` the diagonal of N.
    noises: &'a [f64],
}

/// Columns before those of parts.
const OFFSET_AND_SCORE: usize = 2;

/// A variance that adds less than this, relative to noise, has explained nothing.
const NOTHING: f64 = 1e-9;

impl Columns {
    /// Number of columns of such measurements.
    pub(super) fn count(partitions: &Partitions) -> usize {
        OFFSET_AND_SCORE + partitions.parts()
    }

    /// The columns of measured configurations with these scores.
    pub(super) fn of(scores: Vec<f64>, partitions: &Partitions) -> Self {
        let all = partition_columns(partitions);
        let mut of_parts = Vec::with_capacity(scores.len() * all.len());
        for row in 0..scores.len() {
            let own = all.iter().zip(&partitions.all);
            of_parts.extend(own.map(|(own, of)| own.columns.start + of.part[row] as usize));
        }
        Self {
            of_parts,
            scores,
            partitions: all,
            size: Self::count(partitions),
        }
    }

    /// `[columns]` the relations of a configuration with a score, given the number of each tensor's partition and a measured
    /// configuration with the tensor's order, if there is one.
    pub(super) fn relations(
        &self,
        score: f64,
        tensors: impl Iterator<Item = (usize, Option<usize>)>,
    ) -> Vec<f64> {
        let mut relations = vec![0.0; self.size];
        (relations[0], relations[1]) = (1.0, score);
        for (partition, alike) in tensors {
            // An order that was not measured shares nothing with the measured ones.
            if let Some(alike) = alike {
                let column = self.row(alike)[partition];
                relations[column] += self.partitions[partition].tensors.recip();
            }
        }
        relations
    }

    /// The columns that are 1 for a measured configuration.
    fn row(&self, measured: usize) -> &[usize] {
        &self.of_parts[measured * self.partitions.len()..][..self.partitions.len()]
    }

    fn rows(&self) -> impl Iterator<Item = (f64, &[usize])> {
        let scores = self.scores.iter().enumerate();
        scores.map(|(measured, &score)| (score, self.row(measured)))
    }

    /// `[columns]` the deviation of what each column adds.
    fn deviations(&self, variances: &Variances<'_>) -> Vec<f64> {
        let mut deviations = vec![variances.offset.sqrt(), variances.groups[0].sqrt()];
        // Tensors of one partition share a column, to which each adds its variance.
        for (partition, variance) in self.partitions.iter().zip(&variances.groups[1..]) {
            let deviation = (partition.tensors * variance).sqrt();
            deviations.extend(iter::repeat_n(deviation, partition.columns.len()));
        }
        deviations
    }

    /// Returns `[columns, columns]` the sum of products of the rows' columns, each row with a weight: the lower triangle.
    fn products(&self, weights: impl Iterator<Item = f64>) -> Vec<f64> {
        let size = self.size;
        let mut products = vec![0.0; size * size];
        for ((score, parts), weight) in pace::in_steps(1, self.rows()).zip(weights) {
            products[0] += weight;
            products[size] += weight * score;
            products[size + 1] += weight * score * score;
            // The parts ascend, because each partition has the columns after those of the one
            // before, so that the parts up to one are the columns of its lower triangle.
            for (number, &part) in parts.iter().enumerate() {
                let row = &mut products[part * size..][..=part];
                row[0] += weight;
                row[1] += weight * score;
                for &other in &parts[..=number] {
                    row[other] += weight;
                }
            }
        }
        products
    }

    /// Returns `[columns]` the sum of the rows, each with a weight.
    fn sums(&self, weights: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.size];
        for ((score, parts), weight) in self.rows().zip(weights) {
            sums[0] += weight;
            sums[1] += weight * score;
            for &part in parts {
                sums[part] += weight;
            }
        }
        sums
    }

    fn mean(means: &[f64], score: f64, parts: &[usize]) -> f64 {
        means[0] + score * means[1] + parts.iter().map(|&part| means[part]).sum::<f64>()
    }

    /// `[measured]` what the means of the columns do not explain.
    fn left(&self, residuals: &[f64], means: &[f64]) -> impl Iterator<Item = f64> {
        let rows = self.rows().zip(residuals);
        rows.map(|((score, parts), residual)| residual - Self::mean(means, score, parts))
    }

    /// The columns of a row that are not 0, and what they have.
    fn entries(score: f64, parts: &[usize]) -> impl Iterator<Item = (usize, f64)> {
        let ones = parts.iter().map(|&part| (part, 1.0));
        [(0, 1.0), (1, score)].into_iter().chain(ones)
    }

    /// What each group explains, given A⁻¹ times the residuals and the diagonal of ΦᵀA⁻¹Φ.
    fn explained(&self, weights: &[f64], traces: &[f64]) -> Vec<ExplainedVariance> {
        let sums = self.sums(weights.iter().copied());
        let products: Vec<f64> = sums.iter().map(|sum| sum * sum).collect();
        ExplainedVariance::of_groups(self.by_group(&products), self.by_group(traces))
    }

    /// The sum of what a group's columns have.
    fn by_group<'a>(&'a self, columns: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let partitions = self.partitions.iter();
        let sums = partitions.map(|each| columns[each.columns.clone()].iter().sum::<f64>());
        iter::once(columns[1]).chain(sums)
    }
}

fn partition_columns(partitions: &Partitions) -> Vec<PartitionColumns> {
    let mut next = OFFSET_AND_SCORE;
    let of_partition = |partition: &Partition| {
        let columns = next..next + partition.parts;
        next = columns.end;
        PartitionColumns {
            columns,
            tensors: partition.tensors,
        }
    };
    partitions.all.iter().map(of_partition).collect()
}

impl Covariance for Columns {
    fn groups(&self) -> usize {
        1 + self.partitions.len()
    }

    /// With the columns Φ, the deviations D of what they add and noise N, A is `ΦD²Φᵀ + N`. By Woodbury's identity all of A⁻¹
    /// follows from the inverse of `B = I + DΦᵀN⁻¹ΦD`.
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let woodbury = Woodbury {
            columns: self,
            deviations: self.deviations(variances),
            noises: variances.noises,
        };
        let precisions = variances.noises.iter().map(|noise| noise.recip());
        let precision_of_columns = self.products(precisions);
        let diagonal: Vec<f64> = diagonal(&precision_of_columns, self.size).collect();
        let factor = Factor::of(woodbury.scaled(precision_of_columns), self.size);
        let inverse = factor.inverse();
        let means = woodbury.means(&factor, residuals);
        let weights: Vec<f64> = woodbury.weights(&means, residuals).collect();
        let traces = woodbury.traces(&diagonal, &inverse);
        Solution {
            precisions: woodbury.precisions(&inverse),
            // |A| = |B|·|N|.
            log_determinant: factor.log_determinant + woodbury.log_determinant_of_noise(),
            explained: self.explained(&weights, &traces),
            weights,
            means,
            factor,
        }
    }

    fn posterior(&self, variances: &Variances<'_>, means: Vec<f64>, factor: Factor) -> Posterior {
        let deviations = self.deviations(variances);
        // With the factor L of B, the variance of a configuration after the measurements is the
        // square of L⁻¹D times its columns.
        let mut triangle = factor.inverse;
        triangle.scale_columns(&deviations);
        let variances = deviations.iter().map(|deviation| deviation * deviation);
        Posterior {
            means,
            triangle: triangle.of_eights(),
            of_columns: variances.collect(),
        }
    }
}

impl Woodbury<'_> {
    /// Returns B, of which the lower triangle counts, given ΦᵀN⁻¹Φ.
    fn scaled(&self, mut matrix: Vec<f64>) -> Vec<f64> {
        let size = self.deviations.len();
        for (row, own) in self.deviations.iter().enumerate() {
            let values = &mut matrix[row * size..][..=row];
            for (value, other) in values.iter_mut().zip(&self.deviations) {
                *value *= own * other;
            }
            values[row] += 1.0;
        }
        matrix
    }

    /// `[columns]` the diagonal of ΦᵀA⁻¹Φ, given those of ΦᵀN⁻¹Φ and of B⁻¹: by Woodbury's
    /// identity, it is `(I − B⁻¹) / D²`.
    fn traces(&self, diagonal: &[f64], inverse: &[f64]) -> Vec<f64> {
        let size = self.deviations.len();
        let of_column = |column: usize| {
            let variance = self.deviations[column] * self.deviations[column];
            let explained = 1.0 - inverse[column * size + column];
            // Next to no variance, 0 would be divided by 0.
            if variance * diagonal[column] < NOTHING {
                diagonal[column]
            } else {
                explained / variance
            }
        };
        (0..size).map(of_column).collect()
    }

    /// `[columns]` the mean of what each column adds.
    fn means(&self, factor: &Factor, residuals: &[f64]) -> Vec<f64> {
        let mut means = vec![0.0; self.columns.size];
        // Newton's method finds the maximum of a quadratic function in one step. The second step
        // corrects what rounding made of the first.
        for _ in 0..2 {
            let step = factor.solve(&self.gradient(&means, residuals));
            for ((mean, step), deviation) in means.iter_mut().zip(step).zip(&self.deviations) {
                *mean += step * deviation;
            }
        }
        means
    }

    /// `[columns]` how the logarithm of the probability rises with each mean, in units of the
    /// column's deviation.
    fn gradient(&self, means: &[f64], residuals: &[f64]) -> Vec<f64> {
        let sums = self.columns.sums(self.weights(means, residuals));
        let columns = sums.iter().zip(means).zip(&self.deviations);
        let rises = columns.map(|((sum, mean), &deviation)| {
            // A column without variance stays at 0, and 0 is not divided by 0.
            let units = if deviation > 0.0 {
                mean / deviation
            } else {
                0.0
            };
            sum * deviation - units
        });
        rises.collect()
    }

    /// `[measured]` what the means of the columns do not explain, divided by the noise. With the
    /// means after the measurements, this is A⁻¹ times the residuals.
    fn weights(&self, means: &[f64], residuals: &[f64]) -> impl Iterator<Item = f64> {
        let left = self.columns.left(residuals, means).zip(self.noises);
        left.map(|(left, noise)| left / noise)
    }

    fn log_determinant_of_noise(&self) -> f64 {
        self.noises.iter().map(|noise| libm::log(*noise)).sum()
    }

    /// `[measured]` the diagonal of A⁻¹, given B⁻¹.
    fn precisions(&self, inverse: &[f64]) -> Vec<f64> {
        let rows = self.columns.rows().zip(self.noises);
        let precisions = rows.map(|((score, parts), noise)| {
            let known = self.variance(inverse, score, parts) / noise;
            // Rounding may leave less than nothing of a configuration that the others determine.
            (1.0 - known).max(f64::EPSILON) / noise
        });
        precisions.collect()
    }

    /// The variance of a measured configuration after the measurements, given B⁻¹.
    fn variance(&self, inverse: &[f64], score: f64, parts: &[usize]) -> f64 {
        // Few of a row's columns are not 0, so that the product with B⁻¹ takes few of its entries.
        let columns: Vec<(usize, f64)> = Columns::entries(score, parts)
            .map(|(column, value)| (column, self.deviations[column] * value))
            .collect();
        let of_row = |&(row, own): &(usize, f64)| {
            let row = &inverse[row * self.columns.size..][..self.columns.size];
            let products = columns.iter().map(|&(column, other)| row[column] * other);
            own * products.sum::<f64>()
        };
        columns.iter().map(of_row).sum()
    }
}
