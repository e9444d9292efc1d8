use hlorank_graph::pace;

use super::{
    linear_algebra::Factor,
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
    /// `[partitions]` first column and number of tensors.
    partitions: Vec<(usize, f64)>,
    size: usize,
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
        let mut firsts = Vec::new();
        let mut size = OFFSET_AND_SCORE;
        for partition in &partitions.all {
            firsts.push((size, partition.tensors));
            size += partition.parts;
        }
        let of_parts = (0..scores.len()).flat_map(|row| {
            let columns = partitions.all.iter().zip(&firsts);
            columns.map(move |(partition, (first, _))| first + partition.part[row] as usize)
        });
        Self {
            of_parts: of_parts.collect(),
            scores,
            partitions: firsts,
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
                relations[self.row(alike)[partition]] += self.partitions[partition].1.recip();
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
        let ends = self
            .partitions
            .iter()
            .skip(1)
            .map(|(first, _)| *first)
            .chain([self.size]);
        for (((first, tensors), end), variance) in
            self.partitions.iter().zip(ends).zip(&variances.groups[1..])
        {
            deviations.extend(std::iter::repeat_n(
                (tensors * variance).sqrt(),
                end - first,
            ));
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
        let ends = self
            .partitions
            .iter()
            .skip(1)
            .map(|(first, _)| *first)
            .chain([self.size]);
        let partitions = self
            .partitions
            .iter()
            .zip(ends)
            .map(|((first, _), end)| columns[*first..end].iter().sum());
        [columns[1]].into_iter().chain(partitions)
    }
}

impl Covariance for Columns {
    fn groups(&self) -> usize {
        1 + self.partitions.len()
    }

    /// With the columns Φ, the deviations D of what they add and noise N, A is `ΦD²Φᵀ + N`. By Woodbury's identity all of A⁻¹
    /// follows from the inverse of `B = I + DΦᵀN⁻¹ΦD`.
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let size = self.size;
        let noises = variances.noises;
        let deviations = self.deviations(variances);
        let mut matrix = self.products(noises.iter().map(|noise| noise.recip()));
        let diagonal: Vec<f64> = (0..size)
            .map(|column| matrix[column * size + column])
            .collect();
        for (row, own) in deviations.iter().enumerate() {
            for (value, other) in matrix[row * size..][..=row].iter_mut().zip(&deviations) {
                *value *= own * other;
            }
            matrix[row * size + row] += 1.0;
        }
        let factor = Factor::of(matrix, size);
        let inverse = factor.inverse();
        let mut means = vec![0.0; size];
        // The second time corrects what rounding made of the first.
        for _ in 0..2 {
            let left = self
                .left(residuals, &means)
                .zip(noises)
                .map(|(left, noise)| left / noise);
            let mut step: Vec<f64> = self
                .sums(left)
                .into_iter()
                .zip(&deviations)
                .map(|(sum, deviation)| sum * deviation)
                .collect();
            step.iter_mut()
                .zip(&means)
                .zip(&deviations)
                .for_each(|((step, mean), deviation)| {
                    *step -= if *deviation > 0.0 {
                        mean / deviation
                    } else {
                        0.0
                    };
                });
            for ((mean, step), deviation) in
                means.iter_mut().zip(factor.solve(&step)).zip(&deviations)
            {
                *mean += step * deviation;
            }
        }
        let mut weights = Vec::new();
        let mut precisions = Vec::new();
        for (((score, parts), residual), noise) in self.rows().zip(residuals).zip(noises) {
            weights.push((residual - Self::mean(&means, score, parts)) / noise);
            let known = self.variance(&inverse, &deviations, score, parts) / noise;
            precisions.push((1.0 - known).max(f64::EPSILON) / noise);
        }
        let products: Vec<f64> = self
            .sums(weights.iter().copied())
            .iter()
            .map(|sum| sum * sum)
            .collect();
        let traces: Vec<f64> = (0..size)
            .map(|column| {
                let variance = deviations[column] * deviations[column];
                let explained = 1.0 - inverse[column * size + column];
                if variance * diagonal[column] < NOTHING {
                    diagonal[column]
                } else {
                    explained / variance
                }
            })
            .collect();
        let explained = self.by_group(&products).zip(self.by_group(&traces));
        Solution {
            weights,
            precisions,
            log_determinant: factor.log_determinant
                + noises.iter().map(|noise| libm::log(*noise)).sum::<f64>(),
            explained: explained
                .map(|(product, trace)| ExplainedVariance { product, trace })
                .collect(),
            means,
            factor,
        }
    }

    fn posterior(&self, variances: &Variances<'_>, solution: Solution) -> Posterior {
        let Solution { means, factor, .. } = solution;
        let deviations = self.deviations(variances);
        let mut triangle = factor.inverse;
        triangle.scale_columns(&deviations);
        let of_columns = deviations
            .iter()
            .map(|deviation| deviation * deviation)
            .collect();
        Posterior {
            means,
            triangle: triangle.of_eights(),
            of_columns,
        }
    }
}

impl Columns {
    /// The variance of a measured configuration after the measurements, given B⁻¹ and D.
    fn variance(&self, inverse: &[f64], deviations: &[f64], score: f64, parts: &[usize]) -> f64 {
        let columns = [0, 1].iter().chain(parts);
        let scaled: Vec<f64> = columns
            .clone()
            .map(|&column| deviations[column] * if column == 1 { score } else { 1.0 })
            .collect();
        let rows = columns.clone().zip(&scaled).map(|(&row, own)| {
            let row = &inverse[row * self.size..][..self.size];
            own * columns
                .clone()
                .zip(&scaled)
                .map(|(&column, other)| row[column] * other)
                .sum::<f64>()
        });
        rows.sum()
    }
}
