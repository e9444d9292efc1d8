use hlorank_graph::pace;

use super::{
    kernel::Kernel,
    linear_algebra::{Factor, add_scaled, diagonal, dot},
    partitions::{Partition, Partitions},
    solution::{Covariance, ExplainedVariance, Posterior, Solution, Variances},
};

/// How alike the measured configurations are in each group, pair by pair. A configuration is related to the measured ones by
/// its covariances with them.
pub(super) struct Gram<'a> {
    size: usize,
    /// Per dense group, `[size, size]`.
    dense: Vec<Vec<f64>>,
    partitions: &'a [Partition],
}

impl<'a> Gram<'a> {
    pub(super) fn of(kernel: &Kernel, partitions: &'a Partitions) -> Self {
        let measured = kernel.measured();
        let mut dense = vec![Vec::with_capacity(measured.len() * measured.len()); kernel.dense()];
        for one in pace::in_steps(1, measured) {
            for (group, alike) in dense.iter_mut().zip(kernel.alike(one)) {
                group.extend(alike);
            }
        }
        Self {
            size: measured.len(),
            dense,
            partitions: &partitions.all,
        }
    }

    /// Returns `[size, size]` the covariance of the measured configurations, each group with its variance.
    fn covariance(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense.len());
        let mut sum = vec![0.0; self.size * self.size];
        for (group, variance) in pace::in_steps(1, self.dense.iter()).zip(dense) {
            add_scaled(&mut sum, group, *variance);
        }
        for (partition, variance) in pace::in_steps(1, self.partitions).zip(partitions) {
            partition.add_to_pairs(&mut sum, variance * partition.tensors);
        }
        sum
    }

    /// Returns A: the covariance with the offset, which all configurations share, and with the
    /// noise of each.
    fn noisy_covariance(&self, variances: &Variances<'_>) -> Vec<f64> {
        let mut matrix = self.covariance(variances.groups);
        for value in &mut matrix {
            *value += variances.offset;
        }
        for (row, noise) in variances.noises.iter().enumerate() {
            matrix[row * self.size + row] += noise;
        }
        matrix
    }

    /// Returns, for one member of each group, the sum over all pairs of how alike they are times the pair's weight.
    fn weigh(&self, weights: &[f64]) -> Vec<f64> {
        let dense = pace::in_steps(1, &self.dense).map(|group| dot(group, weights));
        let partitions = pace::in_steps(1, self.partitions);
        let partitions = partitions.map(|partition| partition.weigh_pairs(weights));
        dense.chain(partitions).collect()
    }

    /// The same for weights that are products of the two configurations' factors.
    fn weigh_products(&self, factors: &[f64]) -> Vec<f64> {
        // fᵀ·K·f, so that the matrix of the products is never made.
        let of_row = |(row, factor): (&[f64], &f64)| factor * dot(row, factors);
        let dense = self.dense.iter();
        let dense = dense.map(|group| group.chunks_exact(self.size).zip(factors).map(of_row).sum());
        let partitions = self.partitions.iter();
        let partitions = partitions.map(|partition| partition.weigh_products(factors));
        dense.chain(partitions).collect()
    }
}

/// Configurations of one part are equal in the group, and those of different parts share nothing,
/// so that a number for each configuration takes the place of a matrix.
impl Partition {
    /// Adds what configurations of one part share to a `[size, size]` sum.
    fn add_to_pairs(&self, sum: &mut [f64], shared: f64) {
        for (row, own) in sum.chunks_exact_mut(self.part.len()).zip(&self.part) {
            // Adding 0 instead of skipping a pair keeps the loop free of branches.
            for (sum, other) in row.iter_mut().zip(&self.part) {
                *sum += if own == other { shared } else { 0.0 };
            }
        }
    }

    /// The sum of the `[size, size]` weights of pairs of one part.
    fn weigh_pairs(&self, weights: &[f64]) -> f64 {
        // Sums of columns do not depend on each other, so that no addition waits for another.
        let size = self.part.len();
        let mut columns = vec![0.0; size];
        for (row, own) in weights.chunks_exact(size).zip(&self.part) {
            for ((sum, weight), other) in columns.iter_mut().zip(row).zip(&self.part) {
                *sum += if own == other { *weight } else { 0.0 };
            }
        }
        columns.iter().sum()
    }

    /// The same for weights that are products of the two configurations' factors.
    fn weigh_products(&self, factors: &[f64]) -> f64 {
        // Within a part every pair counts once: the square of the sum of its factors.
        let mut sums = vec![0.0; self.parts];
        for (&part, factor) in self.part.iter().zip(factors) {
            sums[part as usize] += factor;
        }
        dot(&sums, &sums)
    }
}

impl Covariance for Gram<'_> {
    fn groups(&self) -> usize {
        self.dense.len() + self.partitions.len()
    }

    fn solve(&self, variances: &Variances<'_>, residuals: &[f64]) -> Solution {
        let matrix = self.noisy_covariance(variances);
        // One factor gives the weights, the determinant and the inverse: factoring takes the time.
        let factor = Factor::of(matrix, self.size);
        let weights = factor.solve(residuals);
        let inverse = factor.inverse();
        Solution {
            precisions: diagonal(&inverse, self.size).collect(),
            log_determinant: factor.log_determinant,
            explained: ExplainedVariance::of_groups(
                self.weigh_products(&weights),
                self.weigh(&inverse),
            ),
            means: weights.clone(),
            weights,
            factor,
        }
    }

    fn posterior(&self, _variances: &Variances<'_>, means: Vec<f64>, factor: Factor) -> Posterior {
        Posterior {
            means,
            triangle: factor.inverse.of_eights(),
            of_columns: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::Point;

    /// The first and the third tensor divide the configurations in the same way.
    fn kernel() -> Kernel {
        let orders = [[5, 1, 9], [5, 2, 9], [6, 1, 8], [5, 1, 9]];
        let point = |(score, orders): (f64, [u32; 3])| Point {
            score,
            orders: orders.into(),
            ..Point::default()
        };
        Kernel::of_points(
            &[0.0, 1.0, 2.0, 4.0]
                .into_iter()
                .zip(orders)
                .map(point)
                .collect::<Vec<_>>(),
            1.0,
            None,
        )
    }

    #[test]
    fn sums_are_those_over_every_tensor() {
        let kernel = kernel();
        let gram = Gram::of(&kernel, kernel.partitions());
        let variances = [0.5, 2.0, 3.0];
        let covariance = gram.covariance(&variances);
        let factors = [1.0, -2.0, 0.5, 3.0];
        let products: Vec<f64> = factors
            .iter()
            .flat_map(|one| factors.map(|other| one * other))
            .collect();
        let weighed = gram.weigh(&products);
        for (row, one) in kernel.measured().iter().enumerate() {
            let expected = kernel.covariances(one, &kernel.of_tensors(&variances));
            for (found, expected) in covariance[4 * row..][..4].iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12);
            }
        }
        for (found, expected) in gram.weigh_products(&factors).iter().zip(&weighed) {
            assert!((found - expected).abs() < 1e-12);
        }
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
