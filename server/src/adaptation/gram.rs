use super::kernel::Kernel;

/// How alike the measured configurations are in each group.
pub(super) struct Gram<'a> {
    size: usize,
    /// Per dense group, `[size, size]`.
    dense: Vec<Vec<f64>>,
    /// `[size]` the orders of every configuration's tensors.
    orders: Vec<&'a [u64]>,
    groups: usize,
}

impl<'a> Gram<'a> {
    pub(super) fn of(kernel: &'a Kernel) -> Self {
        let measured = kernel.measured();
        let mut dense = vec![Vec::with_capacity(measured.len() * measured.len()); kernel.dense()];
        for one in measured {
            for other in measured {
                dense.iter_mut().zip(kernel.alike(one, other)).for_each(|(group, alike)| group.push(alike));
            }
        }
        let orders = measured.iter().map(|each| each.orders.as_slice()).collect();
        Self { size: measured.len(), dense, orders, groups: kernel.dense() + kernel.tensors() }
    }

    /// Number of measured configurations.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns `[size, size]` the covariance of the measured configurations, each group with its variance.
    pub(super) fn covariance(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, tensors) = variances.split_at(self.dense.len());
        let mut sum = vec![0.0; self.size * self.size];
        for (group, variance) in self.dense.iter().zip(dense) {
            sum.iter_mut().zip(group).for_each(|(sum, alike)| *sum += variance * alike);
        }
        self.each_pair(|row, column, equal| {
            let of_pair: f64 =
                equal.zip(tensors).map(|(equal, variance)| if equal { *variance } else { 0.0 }).sum();
            sum[row * self.size + column] += of_pair;
            if row != column {
                sum[column * self.size + row] += of_pair;
            }
        });
        sum
    }

    /// Returns, for each group, the sum over all pairs of how alike they are times the pair's weight. Weights are
    /// symmetric.
    pub(super) fn weigh(&self, weights: &[f64]) -> Vec<f64> {
        let weigh = |group: &Vec<f64>| super::linear_algebra::dot(group, weights);
        let mut sums: Vec<f64> = self.dense.iter().map(weigh).collect();
        sums.resize(self.groups, 0.0);
        let tensors = &mut sums[self.dense.len()..];
        self.each_pair(|row, column, equal| {
            let weight = weights[row * self.size + column] * if row == column { 1.0 } else { 2.0 };
            tensors.iter_mut().zip(equal).filter(|(_, equal)| *equal).for_each(|(sum, _)| *sum += weight);
        });
        sums
    }

    /// Calls a function with every pair, and with whether their tensors have equal orders.
    fn each_pair(&self, mut add: impl FnMut(usize, usize, EqualOrders<'_>)) {
        if self.groups == self.dense.len() {
            return;
        }
        for (row, one) in self.orders.iter().enumerate() {
            for (column, other) in self.orders[..=row].iter().enumerate() {
                add(row, column, EqualOrders { one, other });
            }
        }
    }
}

/// Whether the tensors of two configurations have equal orders, one after the other.
struct EqualOrders<'a> {
    one: &'a [u64],
    other: &'a [u64],
}

impl Iterator for EqualOrders<'_> {
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        let ((one, ones), (other, others)) = (self.one.split_first()?, self.other.split_first()?);
        (self.one, self.other) = (ones, others);
        Some(one == other)
    }
}
