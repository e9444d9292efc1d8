use std::collections::BTreeMap;

use super::{kernel::Kernel, linear_algebra::dot};

/// How alike the measured configurations are in each group.
///
/// Tensors that divide the configurations in the same way are one group here, since their variances are equal: of the 78
/// tensors of a convolutional network, a hundred measurements tell 22 apart.
pub(super) struct Gram {
    size: usize,
    /// Per dense group, `[size, size]`.
    dense: Vec<Vec<f64>>,
    partitions: Vec<Partition>,
    /// `[tensors]` number of each tensor's partition.
    of_tensor: Vec<usize>,
}

/// One way in which the orders of a tensor's dimensions divide the configurations.
struct Partition {
    /// `[size]` the part of each configuration, numbered in the order of appearance.
    part: Vec<u32>,
    parts: usize,
    /// Number of tensors that divide them so.
    tensors: usize,
}

impl Gram {
    pub(super) fn of(kernel: &Kernel) -> Self {
        let measured = kernel.measured();
        let mut dense = vec![Vec::with_capacity(measured.len() * measured.len()); kernel.dense()];
        for one in measured {
            for other in measured {
                dense.iter_mut().zip(kernel.alike(one, other)).for_each(|(group, alike)| group.push(alike));
            }
        }
        let mut gram = Self { size: measured.len(), dense, partitions: Vec::new(), of_tensor: Vec::new() };
        let mut known = BTreeMap::new();
        for tensor in 0..kernel.tensors() {
            let orders: Vec<u64> = measured.iter().map(|each| each.orders[tensor]).collect();
            let part = parts(&orders);
            let number = *known.entry(part.clone()).or_insert_with(|| {
                let parts = part.iter().max().map_or(0, |&last| last as usize + 1);
                gram.partitions.push(Partition { part, parts, tensors: 0 });
                gram.partitions.len() - 1
            });
            gram.partitions[number].tensors += 1;
            gram.of_tensor.push(number);
        }
        gram
    }

    /// Number of measured configurations.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Number of groups: the dense ones, then partitions.
    pub(super) fn groups(&self) -> usize {
        self.dense.len() + self.partitions.len()
    }

    /// Returns the variances of the kernel's groups, given those of the groups here.
    pub(super) fn of_kernel(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense.len());
        dense.iter().copied().chain(self.of_tensor.iter().map(|&number| partitions[number])).collect()
    }

    /// Returns `[size, size]` the covariance of the measured configurations, each group with its variance.
    #[expect(clippy::cast_precision_loss, reason = "there are far fewer than 2^53 tensors")]
    pub(super) fn covariance(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense.len());
        let mut sum = vec![0.0; self.size * self.size];
        for (group, variance) in self.dense.iter().zip(dense) {
            sum.iter_mut().zip(group).for_each(|(sum, alike)| *sum += variance * alike);
        }
        for (partition, variance) in self.partitions.iter().zip(partitions) {
            let shared = variance * partition.tensors as f64;
            for (row, own) in sum.chunks_exact_mut(self.size).zip(&partition.part) {
                for (sum, other) in row.iter_mut().zip(&partition.part) {
                    *sum += if own == other { shared } else { 0.0 };
                }
            }
        }
        sum
    }

    /// Returns, for one member of each group, the sum over all pairs of how alike they are times the pair's weight.
    pub(super) fn weigh(&self, weights: &[f64]) -> Vec<f64> {
        let dense = self.dense.iter().map(|group| dot(group, weights));
        let partitions = self.partitions.iter().map(|partition| {
            let mut columns = vec![0.0; self.size];
            for (row, own) in weights.chunks_exact(self.size).zip(&partition.part) {
                for ((sum, weight), other) in columns.iter_mut().zip(row).zip(&partition.part) {
                    *sum += if own == other { *weight } else { 0.0 };
                }
            }
            columns.iter().sum()
        });
        dense.chain(partitions).collect()
    }

    /// The same for weights that are products of the two configurations' factors.
    pub(super) fn weigh_products(&self, factors: &[f64]) -> Vec<f64> {
        let of_row = |row: &[f64], factor: &f64| factor * dot(row, factors);
        let dense = self.dense.iter().map(|group| {
            group.chunks_exact(self.size).zip(factors).map(|(row, factor)| of_row(row, factor)).sum()
        });
        let partitions = self.partitions.iter().map(|partition| {
            let mut sums = vec![0.0; partition.parts];
            for (&part, factor) in partition.part.iter().zip(factors) {
                sums[part as usize] += factor;
            }
            dot(&sums, &sums)
        });
        dense.chain(partitions).collect()
    }
}

/// Numbers equal orders in the order of appearance.
fn parts(orders: &[u64]) -> Vec<u32> {
    let mut known = BTreeMap::new();
    let mut next = 0;
    let number = |order: &u64| {
        *known.entry(*order).or_insert_with(|| {
            next += 1;
            next - 1
        })
    };
    orders.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adaptation::Point;

    /// The first and the third tensor divide the configurations in the same way.
    fn kernel() -> Kernel {
        let orders = [[5, 1, 9], [5, 2, 9], [6, 1, 8], [5, 1, 9]];
        let point =
            |(score, orders): (f64, [u64; 3])| Point { score, orders: orders.to_vec(), ..Point::default() };
        Kernel::of(&[0.0, 1.0, 2.0, 4.0].into_iter().zip(orders).map(point).collect::<Vec<_>>())
    }

    #[test]
    fn tensors_that_divide_alike_are_one_group() {
        let gram = Gram::of(&kernel());
        assert_eq!((gram.groups(), gram.size()), (3, 4));
        assert_eq!(gram.of_kernel(&[0.5, 2.0, 3.0]), [0.5, 2.0, 3.0, 2.0]);
    }

    #[test]
    fn sums_are_those_over_every_tensor() {
        let kernel = kernel();
        let gram = Gram::of(&kernel);
        let variances = [0.5, 2.0, 3.0];
        let covariance = gram.covariance(&variances);
        let factors = [1.0, -2.0, 0.5, 3.0];
        let products: Vec<f64> = factors.iter().flat_map(|one| factors.map(|other| one * other)).collect();
        let weighed = gram.weigh(&products);
        for (row, one) in kernel.measured().iter().enumerate() {
            let expected = kernel.covariances(one, &gram.of_kernel(&variances));
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
                equal.iter().map(|&other| factors[row] * factors[other]).sum::<f64>()
            })
            .sum();
        assert!((weighed[1] - by_hand).abs() < 1e-12);
    }
}
