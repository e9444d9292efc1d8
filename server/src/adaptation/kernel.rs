use std::collections::BTreeMap;

use super::{
    Point,
    scale::{Scale, median_distance, squared_distance},
};

/// The groups of properties whose variance is learned, and how alike two configurations are in each.
///
/// Numbers are standardized over the measured configurations, so that a prediction depends on the measurements and on the
/// predicted configuration alone.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    score: Scale,
    bounds: Scale,
    /// What standardized bounds are divided by.
    length: f64,
    /// Per tensor, the measured configurations that have an order of dimensions.
    measured_with: Vec<BTreeMap<u64, Vec<usize>>>,
    measured: Vec<Scaled>,
    dense: Vec<Dense>,
}

/// A configuration in the units of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Scaled {
    score: Vec<f64>,
    bounds: Vec<f64>,
    pub(super) orders: Vec<u64>,
}

/// A group of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dense {
    /// A line in the score.
    Score,
    /// A Matérn 5/2 function of the bounds of a tile.
    Bounds,
}

impl Kernel {
    /// The kernel of these measured configurations, of which there is at least one.
    pub(super) fn of(points: &[Point]) -> Self {
        let scores: Vec<[f64; 1]> = points.iter().map(|point| [point.score]).collect();
        let score = Scale::of(scores.iter().map(<[f64; 1]>::as_slice));
        let bounds = Scale::of(points.iter().map(|point| point.bounds.as_slice()));
        let scaled: Vec<_> = points.iter().map(|point| bounds.apply(&point.bounds, 1.0)).collect();
        let mut dense = vec![Dense::Score];
        if !points[0].bounds.is_empty() {
            dense.push(Dense::Bounds);
        }
        let mut kernel = Self {
            score,
            bounds,
            length: median_distance(&scaled),
            measured_with: vec![BTreeMap::new(); points[0].orders.len()],
            measured: Vec::new(),
            dense,
        };
        kernel.measured = points.iter().map(|point| kernel.scaled(point)).collect();
        for (number, point) in points.iter().enumerate() {
            for (with, &order) in kernel.measured_with.iter_mut().zip(&point.orders) {
                with.entry(order).or_default().push(number);
            }
        }
        kernel
    }

    pub(super) fn measured(&self) -> &[Scaled] {
        &self.measured
    }

    /// Number of families that share the variance evenly: every dense group is one, and so are all tensors together.
    pub(super) fn families(&self) -> usize {
        self.dense.len() + usize::from(!self.measured_with.is_empty())
    }

    /// Number of dense groups, which come first.
    pub(super) fn dense(&self) -> usize {
        self.dense.len()
    }

    /// Number of tensors, each of which is a group.
    pub(super) fn tensors(&self) -> usize {
        self.measured_with.len()
    }

    /// Returns for each tensor what each measured order has, summed up over the configurations with it: `value` is
    /// given the tensor and the number of a configuration.
    pub(super) fn by_order(&self, value: impl Fn(usize, usize) -> f64) -> Vec<BTreeMap<u64, f64>> {
        let tensors = self.measured_with.iter().enumerate();
        let sums = |(tensor, with): (usize, &BTreeMap<u64, Vec<usize>>)| {
            let sum = |numbers: &[usize]| numbers.iter().map(|&number| value(tensor, number)).sum();
            with.iter().map(|(&order, numbers)| (order, sum(numbers))).collect()
        };
        tensors.map(sums).collect()
    }

    /// Returns what a line in the standardized score adds per unit of score, and at a score of 0, if its value at the
    /// measured configurations is weighted so.
    pub(super) fn line(&self, weights: &[f64]) -> (f64, f64) {
        let (mean, factor) = self.score.of_place(0);
        let sum: f64 = self.measured.iter().zip(weights).map(|(each, weight)| each.score[0] * weight).sum();
        (sum * factor, -sum * factor * mean)
    }

    pub(super) fn scaled(&self, point: &Point) -> Scaled {
        Scaled {
            score: self.score.apply(&[point.score], 1.0),
            bounds: self.bounds.apply(&point.bounds, self.length.recip()),
            orders: point.orders.clone(),
        }
    }

    /// How alike two configurations are in each dense group.
    pub(super) fn alike<'a>(&'a self, one: &'a Scaled, other: &'a Scaled) -> impl Iterator<Item = f64> + 'a {
        self.dense.iter().map(|group| match group {
            Dense::Score => one.score[0] * other.score[0],
            Dense::Bounds => matern(squared_distance(&one.bounds, &other.bounds)),
        })
    }

    /// The covariance of a configuration with every measured one, given the variance of each group.
    pub(super) fn covariances(&self, scaled: &Scaled, variances: &[f64]) -> Vec<f64> {
        let (dense, tensors) = variances.split_at(self.dense.len());
        let weighted =
            |other| self.alike(scaled, other).zip(dense).map(|(alike, variance)| alike * variance).sum();
        let mut covariances: Vec<f64> = self.measured.iter().map(weighted).collect();
        for ((with, order), variance) in self.measured_with.iter().zip(&scaled.orders).zip(tensors) {
            for &number in with.get(order).into_iter().flatten() {
                covariances[number] += variance;
            }
        }
        covariances
    }

    /// The variance of a configuration before anything is measured.
    pub(super) fn variance(&self, scaled: &Scaled, variances: &[f64]) -> f64 {
        self.between(scaled, scaled, variances)
    }

    /// The covariance of two configurations before anything is measured.
    pub(super) fn between(&self, one: &Scaled, other: &Scaled, variances: &[f64]) -> f64 {
        let (dense, tensors) = variances.split_at(self.dense.len());
        let dense: f64 = self.alike(one, other).zip(dense).map(|(alike, variance)| alike * variance).sum();
        let equal = one.orders.iter().zip(&other.orders).map(|(one, other)| one == other);
        dense + equal.zip(tensors).map(|(equal, variance)| if equal { *variance } else { 0.0 }).sum::<f64>()
    }
}

/// The Matérn 5/2 function of a squared distance.
fn matern(squared: f64) -> f64 {
    let distance = (5.0 * squared).sqrt();
    (1.0 + distance + 5.0 / 3.0 * squared) * libm::exp(-distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_like_itself() {
        assert_eq!(matern(0.0), 1.0);
        assert!(matern(1.0) < matern(0.5));
    }

    #[test]
    fn tensors_are_alike_if_their_orders_are_equal() {
        let point = |orders: &[u64], score| Point { score, orders: orders.to_vec(), ..Point::default() };
        let kernel = Kernel::of(&[point(&[1, 2], 0.0), point(&[1, 3], 2.0)]);
        assert_eq!((kernel.dense(), kernel.tensors(), kernel.families()), (1, 2, 2));
        let candidate = kernel.scaled(&point(&[1, 3], 1.0));
        assert_eq!(kernel.covariances(&candidate, &[0.5, 0.25, 0.125]), [0.25, 0.375]);
        assert_eq!(kernel.variance(&candidate, &[0.5, 0.25, 0.125]), 0.375);
    }
}
