use std::{iter, ops::Range};

use hlorank_graph::pace;

use super::{
    linear_algebra::{Factor, diagonal},
    partitions::Partitions,
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
        let mut all = Vec::new();
        let mut size = OFFSET_AND_SCORE;
        for partition in &partitions.all {
            let columns = size..size + partition.parts;
            size = columns.end;
            all.push(PartitionColumns {
                columns,
                tensors: partition.tensors,
            });
        }
        let mut of_parts = Vec::with_capacity(scores.len() * all.len());
        for row in 0..scores.len() {
            let own = all.iter().zip(&partitions.all);
            of_parts.extend(own.map(|(own, of)| own.columns.start + of.part[row] as usize));
        }
        Self {
            of_parts,
            scores,
            partitions: all,
            size,
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
        self.scores
            .iter()
            .enumerate()
            .map(|(measured, &score)| (score, self.row(measured)))
    }

    /// `[columns]` the deviation of what each column adds.
    fn deviations(&self, variances: &Variances<'_>) -> Vec<f64> {
        let mut deviations = vec![variances.offset.sqrt(), variances.groups[0].sqrt()];
        for (partition, variance) in self.partitions.iter().zip(&variances.groups[1..]) {
            let deviation = (partition.tensors * variance).sqrt();
            deviations.extend(iter::repeat_n(deviation, partition.columns.len()));
        }
        deviations
    }

    /// Returns `[columns, columns]` the sum of products of the rows' columns, each row with a weight: the lower triangle.
    fn products(&self, weights: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut products = vec![0.0; self.size * self.size];
        for ((score, parts), weight) in pace::in_steps(1, self.rows()).zip(weights) {
            products[0] += weight;
            products[self.size] += weight * score;
            products[self.size + 1] += weight * score * score;
            for (number, &part) in parts.iter().enumerate() {
                let row = &mut products[part * self.size..][..=part];
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
        self.rows()
            .zip(residuals)
            .map(|((score, parts), residual)| residual - Self::mean(means, score, parts))
    }

    /// The sum of what a group's columns have.
    fn by_group<'a>(&'a self, columns: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let partitions = self.partitions.iter();
        let sums = partitions.map(|each| columns[each.columns.clone()].iter().sum::<f64>());
        iter::once(columns[1]).chain(sums)
    }
}

impl Covariance for Columns {
    fn groups(&self) -> usize {
        1 + self.partitions.len()
    }

    /// With the columns Φ, the deviations D of what they add and noise N, A is `ΦD²Φᵀ + N`. By Woodbury's identity all of A⁻¹
    /// follows from the inverse of `B = I + DΦᵀN⁻¹ΦD`.
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let noises = variances.noises;
        let deviations = self.deviations(variances);
        let precision_of_columns = self.products(noises.iter().map(|noise| noise.recip()));
        let diagonal: Vec<f64> = diagonal(&precision_of_columns, self.size).collect();
        let factor = Factor::of(scaled(precision_of_columns, &deviations), self.size);
        let inverse = factor.inverse();
        let means = self.means(&factor, &deviations, noises, residuals);
        let left = self.left(residuals, &means).zip(noises);
        let weights: Vec<f64> = left.map(|(left, noise)| left / noise).collect();
        let sums = self.sums(weights.iter().copied());
        let products: Vec<f64> = sums.iter().map(|sum| sum * sum).collect();
        let traces = traces(&diagonal, &inverse, &deviations);
        let log_noises: f64 = noises.iter().map(|noise| libm::log(*noise)).sum();
        Solution {
            weights,
            precisions: self.precisions(&inverse, &deviations, noises),
            // |A| = |B|·|N|.
            log_determinant: factor.log_determinant + log_noises,
            explained: ExplainedVariance::of_groups(
                self.by_group(&products),
                self.by_group(&traces),
            ),
            means,
            factor,
        }
    }

    fn posterior(&self, variances: &Variances<'_>, solution: Solution) -> Posterior {
        let deviations = self.deviations(variances);
        let mut triangle = solution.factor.inverse;
        triangle.scale_columns(&deviations);
        let variances = deviations.iter().map(|deviation| deviation * deviation);
        Posterior {
            means: solution.means,
            triangle: triangle.of_eights(),
            of_columns: variances.collect(),
        }
    }
}

/// Returns B, of which the lower triangle counts, given ΦᵀN⁻¹Φ and D.
fn scaled(mut matrix: Vec<f64>, deviations: &[f64]) -> Vec<f64> {
    let size = deviations.len();
    for (row, own) in deviations.iter().enumerate() {
        let values = &mut matrix[row * size..][..=row];
        for (value, other) in values.iter_mut().zip(deviations) {
            *value *= own * other;
        }
        values[row] += 1.0;
    }
    matrix
}

/// `[columns]` the diagonal of ΦᵀA⁻¹Φ, given those of ΦᵀN⁻¹Φ and of B⁻¹: by Woodbury's identity, it is `(I − B⁻¹) / D²`.
fn traces(diagonal: &[f64], inverse: &[f64], deviations: &[f64]) -> Vec<f64> {
    let size = deviations.len();
    let of_column = |column: usize| {
        let variance = deviations[column] * deviations[column];
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

impl Columns {
    /// `[columns]` the mean of what each column adds.
    fn means(
        &self,
        factor: &Factor,
        deviations: &[f64],
        noises: &[f64],
        residuals: &[f64],
    ) -> Vec<f64> {
        let mut means = vec![0.0; self.size];
        // The second time corrects what rounding made of the first.
        for _ in 0..2 {
            let left = self.left(residuals, &means).zip(noises);
            let sums = self.sums(left.map(|(left, noise)| left / noise));
            let columns = sums.iter().zip(&means).zip(deviations);
            let step = columns.map(|((sum, mean), &deviation)| {
                let units = if deviation > 0.0 {
                    mean / deviation
                } else {
                    0.0
                };
                sum * deviation - units
            });
            let step = factor.solve(&step.collect::<Vec<f64>>());
            for ((mean, step), deviation) in means.iter_mut().zip(step).zip(deviations) {
                *mean += step * deviation;
            }
        }
        means
    }

    /// `[measured]` the diagonal of A⁻¹, given B⁻¹ and D.
    fn precisions(&self, inverse: &[f64], deviations: &[f64], noises: &[f64]) -> Vec<f64> {
        let rows = self.rows().zip(noises);
        let precisions = rows.map(|((score, parts), noise)| {
            let known = self.variance(inverse, deviations, score, parts) / noise;
            // Rounding may leave less than nothing of a configuration that the others determine.
            (1.0 - known).max(f64::EPSILON) / noise
        });
        precisions.collect()
    }

    /// The variance of a measured configuration after the measurements, given B⁻¹ and D.
    fn variance(&self, inverse: &[f64], deviations: &[f64], score: f64, parts: &[usize]) -> f64 {
        let ones = parts.iter().map(|&part| (part, 1.0));
        let columns = [(0, 1.0), (1, score)].into_iter().chain(ones);
        let columns: Vec<(usize, f64)> = columns
            .map(|(column, value)| (column, deviations[column] * value))
            .collect();
        let of_row = |&(row, own): &(usize, f64)| {
            let row = &inverse[row * self.size..][..self.size];
            let products = columns.iter().map(|&(column, other)| row[column] * other);
            own * products.sum::<f64>()
        };
        columns.iter().map(of_row).sum()
    }
}
