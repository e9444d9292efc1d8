//! The covariance A of the measured configurations, in two forms that say the same.
//!
//! A is a sum over groups of properties, of each group's variance times how alike two configurations are in it, with an offset
//! that all of them share and the noise of each measurement. [`Gram`] has it pair by pair. If there are fewer properties than
//! measurements, [`Columns`] has a column for each property, and Woodbury's identity makes the matrices as small as their number.

use std::{collections::BTreeMap, iter, ops::Range};

use hlorank_graph::pace;

use super::linear_algebra::{Factor, TriangleOfEights, add_scaled, diagonal, dot};

/// What solves A.
pub(super) trait Covariance {
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution;
}

/// What A consists of.
pub(super) struct Variances<'a> {
    /// The variance of one member of each group: dense groups come first, then partitions.
    pub(super) groups: &'a [f64],
    /// The variance of a common offset.
    pub(super) offset: f64,
    /// `[measured]` the variance of each measurement's noise.
    pub(super) noises: &'a [f64],
}

/// A, solved for the residuals r. K is how alike the measured configurations are in one member of a group.
pub(super) struct Solution {
    /// `[measured]` A⁻¹r.
    pub(super) weights: Vec<f64>,
    /// `[measured]` the diagonal of A⁻¹.
    pub(super) precisions: Vec<f64>,
    /// ln |A|.
    pub(super) log_determinant: f64,
    /// `[groups]` weightsᵀ·K·weights.
    pub(super) products: Vec<f64>,
    /// `[groups]` the trace of A⁻¹K.
    pub(super) traces: Vec<f64>,
    /// `[relations]` what gives the mean of a configuration when it is multiplied with its relations.
    means: Vec<f64>,
    factor: Factor,
    /// `[columns]` the deviation of what each column adds; empty of pairs.
    deviations: Vec<f64>,
}

/// What predicts a configuration from how it is related to the measured ones.
pub(super) struct Posterior {
    /// `[relations]` what gives the mean.
    means: Vec<f64>,
    triangle: TriangleOfEights,
    /// `[relations]` the variance of each, if relations are columns; empty if they are covariances.
    of_columns: Vec<f64>,
}

/// A configuration as the measurements see it.
pub(super) struct Covariances {
    pub(super) mean: f64,
    relations: Vec<f64>,
    reduced: Vec<f64>,
}

/// The ways in which the orders of tensors divide the measured configurations.
///
/// Tensors that divide them in the same way have equal variances: of the 78 tensors of a convolutional network, a hundred
/// measurements tell 22 apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Partitions {
    pub(super) all: Vec<Partition>,
    /// `[tensors]` number of each tensor's partition.
    pub(super) of_tensor: Vec<usize>,
}

/// One way in which the orders of a tensor's dimensions divide the configurations. Those of one part are equal in the group, and
/// those of different parts share nothing, so that a number for each takes the place of a matrix.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// `[measured]` the part of each configuration, numbered in the order of appearance.
    part: Vec<u32>,
    parts: usize,
    /// Number of tensors that divide them so.
    tensors: f64,
}

/// The measured configurations as rows of few columns: an offset, the score, and one column for each part of every
/// partition, which is 1 for the configurations of the part.
///
/// A configuration is related to the measured ones by its own columns. Tensors of one partition share theirs: a column is
/// the fraction of them whose order is that of the part.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// `[measured]` the score in the units of the kernel.
    scores: Vec<f64>,
    /// `[measured, partitions]` the column of each configuration's part.
    of_parts: Vec<usize>,
    /// The columns of each partition, and its number of tensors.
    partitions: Vec<(Range<usize>, f64)>,
    size: usize,
}

/// How alike the measured configurations are in each group, pair by pair. A configuration is related to the measured ones by
/// its covariances with them.
pub(super) struct Gram<'a> {
    /// Number of measured configurations.
    pub(super) size: usize,
    /// Per dense group, `[size, size]`.
    pub(super) dense: Vec<Vec<f64>>,
    pub(super) partitions: &'a [Partition],
}

/// Columns before those of parts.
const OFFSET_AND_SCORE: usize = 2;

/// A variance that adds less than this, relative to noise, has explained nothing.
const NOTHING: f64 = 1e-9;

impl Solution {
    pub(super) fn posterior(self) -> Posterior {
        let mut triangle = self.factor.inverse;
        if !self.deviations.is_empty() {
            // With the factor L of B, the variance of a configuration after the measurements is the square of L⁻¹D times its
            // columns.
            triangle.scale_columns(&self.deviations);
        }
        let deviations = self.deviations.iter();
        Posterior {
            means: self.means,
            triangle: triangle.of_eights(),
            of_columns: deviations.map(|deviation| deviation * deviation).collect(),
        }
    }
}

impl Posterior {
    pub(super) fn relate(&self, relations: Vec<f64>) -> Covariances {
        Covariances {
            mean: self.mean(&relations),
            reduced: self.triangle.reduce(&relations),
            relations: if self.of_columns.is_empty() {
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
        let columns = one.relations.iter().zip(&other.relations);
        let before = columns.zip(&self.of_columns);
        let before = before.map(|((one, other), variance)| one * other * variance);
        before.sum::<f64>() - reduced
    }
}

impl Partitions {
    /// The partitions of configurations, each of which has an order for every tensor.
    pub(super) fn new(orders: &[&[u32]]) -> Self {
        let mut partitions = Self::default();
        let mut known = BTreeMap::new();
        for tensor in 0..orders.first().map_or(0, |first| first.len()) {
            let mut numbers = BTreeMap::new();
            let part = orders.iter().map(|each| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(each[tensor]).or_insert(next)
            });
            let part: Vec<u32> = part.collect();
            let number = *known.entry(part.clone()).or_insert_with(|| {
                partitions.all.push(Partition {
                    part,
                    parts: numbers.len(),
                    tensors: 0.0,
                });
                partitions.all.len() - 1
            });
            partitions.all[number].tensors += 1.0;
            partitions.of_tensor.push(number);
        }
        partitions
    }

    /// Number of columns that the measured configurations have.
    pub(super) fn columns(&self) -> usize {
        let parts = self.all.iter().map(|partition| partition.parts);
        OFFSET_AND_SCORE + parts.sum::<usize>()
    }
}

impl Columns {
    /// The columns of measured configurations with these scores.
    pub(super) fn new(scores: Vec<f64>, partitions: &Partitions) -> Self {
        let mut next = OFFSET_AND_SCORE;
        let all = partitions.all.iter().map(|partition| {
            let columns = next..next + partition.parts;
            next = columns.end;
            (columns, partition.tensors)
        });
        let all: Vec<(Range<usize>, f64)> = all.collect();
        let mut of_parts = Vec::with_capacity(scores.len() * all.len());
        for row in 0..scores.len() {
            let own = all.iter().zip(&partitions.all);
            of_parts.extend(own.map(|((columns, _), of)| columns.start + of.part[row] as usize));
        }
        Self {
            of_parts,
            scores,
            partitions: all,
            size: next,
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
                let column = self.of_parts[alike * self.partitions.len() + partition];
                relations[column] += self.partitions[partition].1.recip();
            }
        }
        relations
    }

    /// The score of each measured configuration, and the columns of parts that are 1 for it.
    fn rows(&self) -> impl Iterator<Item = (f64, &[usize])> {
        let count = self.partitions.len();
        let scores = self.scores.iter().enumerate();
        scores.map(move |(measured, &score)| (score, &self.of_parts[measured * count..][..count]))
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
    fn sums(&self, weights: &[f64]) -> Vec<f64> {
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

    /// The sum of what each group's columns have.
    fn by_group(&self, columns: &[f64]) -> Vec<f64> {
        let partitions = self.partitions.iter();
        let sums = partitions.map(|(own, _)| columns[own.clone()].iter().sum::<f64>());
        iter::once(columns[1]).chain(sums).collect()
    }
}

impl Covariance for Columns {
    /// With the columns Φ, the deviations D of what they add and noise N, A is `ΦD²Φᵀ + N`. By Woodbury's identity all of A⁻¹
    /// follows from the inverse of `B = I + DΦᵀN⁻¹ΦD`.
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let (size, noises) = (self.size, variances.noises);
        let mut deviations = vec![variances.offset.sqrt(), variances.groups[0].sqrt()];
        // Tensors of one partition share a column, to which each adds its variance.
        for ((columns, tensors), variance) in self.partitions.iter().zip(&variances.groups[1..]) {
            let deviation = (tensors * variance).sqrt();
            deviations.extend(iter::repeat_n(deviation, columns.len()));
        }
        let mut matrix = self.products(noises.iter().map(|noise| noise.recip()));
        let diagonal: Vec<f64> = diagonal(&matrix, size).collect();
        for (row, own) in deviations.iter().enumerate() {
            let values = &mut matrix[row * size..][..=row];
            for (value, other) in values.iter_mut().zip(&deviations) {
                *value *= own * other;
            }
            values[row] += 1.0;
        }
        let factor = Factor::new(matrix, size);
        let inverse = factor.inverse();
        // What means of the columns do not explain, divided by the noise. With the means after the measurements, this is A⁻¹r.
        let unexplained = |means: &[f64]| -> Vec<f64> {
            let rows = self.rows().zip(residuals).zip(noises);
            let left = rows.map(|(((score, parts), residual), noise)| {
                let of_parts = parts.iter().map(|&part| means[part]).sum::<f64>();
                (residual - (means[0] + score * means[1] + of_parts)) / noise
            });
            left.collect()
        };
        let mut means = vec![0.0; size];
        // Newton's method finds the maximum of a quadratic function in one step. The second step
        // corrects what rounding made of the first.
        for _ in 0..2 {
            // How the logarithm of the probability rises with each mean, in units of the column's deviation.
            let mut gradient = self.sums(&unexplained(&means));
            for ((rise, mean), &deviation) in gradient.iter_mut().zip(&means).zip(&deviations) {
                // A column without variance stays at 0, and 0 is not divided by 0.
                let units = if deviation > 0.0 {
                    mean / deviation
                } else {
                    0.0
                };
                *rise = *rise * deviation - units;
            }
            let steps = factor.solve(&gradient);
            for ((mean, step), deviation) in means.iter_mut().zip(steps).zip(&deviations) {
                *mean += step * deviation;
            }
        }
        let weights = unexplained(&means);
        // The diagonal of ΦᵀA⁻¹Φ is by Woodbury's identity that of `(I − B⁻¹) / D²`.
        let traces = deviations.iter().enumerate().map(|(column, deviation)| {
            let variance = deviation * deviation;
            // Next to no variance, 0 would be divided by 0.
            if variance * diagonal[column] < NOTHING {
                diagonal[column]
            } else {
                (1.0 - inverse[column * size + column]) / variance
            }
        });
        let traces: Vec<f64> = traces.collect();
        let precisions = self.rows().zip(noises).map(|((score, parts), noise)| {
            // Few of a row's columns are not 0, so that the product with B⁻¹ takes few of its entries.
            let ones = parts.iter().map(|&part| (part, deviations[part]));
            let own = [(0, deviations[0]), (1, deviations[1] * score)];
            let own: Vec<(usize, f64)> = own.into_iter().chain(ones).collect();
            let variance = own.iter().map(|&(row, value)| {
                let row = &inverse[row * size..][..size];
                value
                    * own
                        .iter()
                        .map(|&(column, other)| row[column] * other)
                        .sum::<f64>()
            });
            // Rounding may leave less than nothing of a configuration that the others determine.
            (1.0 - variance.sum::<f64>() / noise).max(f64::EPSILON) / noise
        });
        let squares: Vec<f64> = self.sums(&weights).iter().map(|sum| sum * sum).collect();
        // |A| = |B|·|N|.
        let of_noise: f64 = noises.iter().map(|noise| libm::log(*noise)).sum();
        Solution {
            precisions: precisions.collect(),
            log_determinant: factor.log_determinant + of_noise,
            products: self.by_group(&squares),
            traces: self.by_group(&traces),
            weights,
            means,
            factor,
            deviations,
        }
    }
}

impl Gram<'_> {
    /// Returns `[size, size]` the covariance of the measured configurations, each group with its variance.
    fn covariance(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense.len());
        let mut sum = vec![0.0; self.size * self.size];
        for (group, variance) in pace::in_steps(1, self.dense.iter()).zip(dense) {
            add_scaled(&mut sum, group, *variance);
        }
        for (partition, variance) in pace::in_steps(1, self.partitions).zip(partitions) {
            let shared = variance * partition.tensors;
            for (row, own) in sum.chunks_exact_mut(self.size).zip(&partition.part) {
                // Adding 0 instead of skipping a pair keeps the loop free of branches.
                for (sum, other) in row.iter_mut().zip(&partition.part) {
                    *sum += if own == other { shared } else { 0.0 };
                }
            }
        }
        sum
    }

    /// Returns, for one member of each group, the sum over all pairs of how alike they are times the pair's weight.
    fn weigh(&self, weights: &[f64]) -> Vec<f64> {
        let dense = pace::in_steps(1, &self.dense).map(|group| dot(group, weights));
        let partitions = pace::in_steps(1, self.partitions).map(|Partition { part, .. }| {
            // Sums of columns do not depend on each other, so that no addition waits for another.
            let mut columns = vec![0.0; self.size];
            for (row, own) in weights.chunks_exact(self.size).zip(part) {
                for ((sum, weight), other) in columns.iter_mut().zip(row).zip(part) {
                    *sum += if own == other { *weight } else { 0.0 };
                }
            }
            columns.iter().sum()
        });
        dense.chain(partitions).collect()
    }

    /// The same for weights that are products of the two configurations' factors.
    fn weigh_products(&self, factors: &[f64]) -> Vec<f64> {
        // fᵀ·K·f, so that the matrix of the products is never made.
        let of_row = |(row, factor): (&[f64], &f64)| factor * dot(row, factors);
        let dense = self.dense.iter();
        let dense = dense.map(|group| group.chunks_exact(self.size).zip(factors).map(of_row).sum());
        let partitions = self.partitions.iter().map(|partition| {
            // Within a part every pair counts once: the square of the sum of its factors.
            let mut sums = vec![0.0; partition.parts];
            for (&part, factor) in partition.part.iter().zip(factors) {
                sums[part as usize] += factor;
            }
            dot(&sums, &sums)
        });
        dense.chain(partitions).collect()
    }
}

impl Covariance for Gram<'_> {
    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let mut matrix = self.covariance(variances.groups);
        for value in &mut matrix {
            *value += variances.offset;
        }
        for (row, noise) in variances.noises.iter().enumerate() {
            matrix[row * self.size + row] += noise;
        }
        // One factor gives the weights, the determinant and the inverse: factoring takes the time.
        let factor = Factor::new(matrix, self.size);
        let weights = factor.solve(residuals);
        let inverse = factor.inverse();
        Solution {
            precisions: diagonal(&inverse, self.size).collect(),
            log_determinant: factor.log_determinant,
            products: self.weigh_products(&weights),
            traces: self.weigh(&inverse),
            means: weights.clone(),
            weights,
            factor,
            deviations: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Point, kernel::Kernel};

    #[test]
    fn tensors_that_divide_alike_are_one_partition() {
        let partitions = Partitions::new(&ORDERS.each_ref().map(<[u32; 3]>::as_slice));
        assert_eq!(
            (partitions.of_tensor, partitions.all.len()),
            (vec![0, 1, 0], 2)
        );
        let [first, second] = &partitions.all[..] else {
            panic!("two partitions")
        };
        assert_eq!(
            (&first.part[..], first.parts, first.tensors),
            (&[0, 0, 1, 0][..], 2, 2.0)
        );
        assert_eq!((&second.part[..], second.tensors), (&[0, 1, 0, 0][..], 1.0));
    }

    /// The first and the third tensor divide the configurations in the same way.
    const ORDERS: [[u32; 3]; 4] = [[5, 1, 9], [5, 2, 9], [6, 1, 8], [5, 1, 9]];

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (one, other) in iter::zip(found, expected) {
            assert!((one - other).abs() < 1e-12, "{found:?}, {expected:?}");
        }
    }

    #[test]
    fn columns_have_the_solution_and_the_predictions_of_pairs() {
        let (scores, offset, alike) = ([-1.0, 0.5, 2.0, 4.0], 0.7, 1);
        let partitions = Partitions::new(&ORDERS.each_ref().map(<[u32; 3]>::as_slice));
        let columns = Columns::new(scores.to_vec(), &partitions);
        let gram = Gram {
            size: scores.len(),
            dense: vec![
                scores
                    .iter()
                    .flat_map(|one| scores.map(|other| one * other))
                    .collect(),
            ],
            partitions: &partitions.all,
        };
        let variances = Variances {
            groups: &[0.5, 2.0, 3.0],
            offset,
            noises: &[0.1, 0.2, 0.3, 0.4],
        };
        let residuals = [1.0, -2.0, 0.5, 3.0];
        let of_columns = columns.solve(&variances, &residuals);
        let of_pairs = gram.solve(&variances, &residuals);
        assert_close(&of_columns.weights, &of_pairs.weights);
        assert_close(&of_columns.precisions, &of_pairs.precisions);
        assert_close(&of_columns.products, &of_pairs.products);
        assert_close(&of_columns.traces, &of_pairs.traces);
        assert_close(&[of_columns.log_determinant], &[of_pairs.log_determinant]);

        let covariance = gram.covariance(variances.groups);
        let row = covariance[alike * scores.len()..][..scores.len()].iter();
        let tensors = partitions
            .of_tensor
            .iter()
            .map(|&partition| (partition, Some(alike)));
        let [posterior, of_pairs] = [of_columns, of_pairs].map(Solution::posterior);
        let one = posterior.relate(columns.relations(scores[alike], tensors));
        let expected = of_pairs.relate(row.map(|covariance| covariance + offset).collect());
        assert_close(
            &[one.mean, posterior.lowered(&one, &one)],
            &[expected.mean, of_pairs.lowered(&expected, &expected)],
        );
    }

    #[test]
    fn sums_are_those_over_every_tensor() {
        let point = |(score, orders): (f64, &[u32; 3])| Point::of_orders(score, orders);
        let points: Vec<Point> = iter::zip([0.0, 1.0, 2.0, 4.0], &ORDERS)
            .map(point)
            .collect();
        let kernel = Kernel::of_points(&points, 1.0, None);
        let gram = kernel.gram();
        let variances = [0.5, 2.0, 3.0];
        let covariance = gram.covariance(&variances);
        let factors = [1.0, -2.0, 0.5, 3.0];
        let products: Vec<f64> = factors
            .iter()
            .flat_map(|one| factors.map(|other| one * other))
            .collect();
        let weighed = gram.weigh(&products);
        for (row, one) in kernel.measured.iter().enumerate() {
            let expected = kernel.covariances(one, &kernel.of_tensors(&variances));
            assert_close(&covariance[4 * row..][..4], &expected);
        }
        assert_close(&gram.weigh_products(&factors), &weighed);
        let alike = [[0, 1, 3], [0, 1, 3], [2, 2, 2], [0, 1, 3]];
        let by_hand: f64 = (0..4)
            .map(|row| {
                let mut equal = alike[row].to_vec();
                equal.dedup();
                equal
                    .iter()
                    .map(|&other| factors[row] * factors[other])
                    .sum::<f64>()
            })
            .sum();
        assert!((weighed[1] - by_hand).abs() < 1e-12);
    }
}
