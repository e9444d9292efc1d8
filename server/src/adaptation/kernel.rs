use std::collections::BTreeMap;

use super::{
    Point,
    linear_algebra::dot,
    scale::{Scale, median_distance, squared_distance},
};

/// The groups of properties whose variance is learned, and how alike two configurations are in each.
///
/// Numbers are standardized over the measured configurations, so that a prediction depends on the measurements and on the
/// predicted configuration alone.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    score: Scale,
    embedding: Scale,
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
    embedding: Vec<f64>,
    bounds: Vec<f64>,
    pub(super) orders: Vec<u64>,
}

/// A group of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dense {
    /// A line in the score.
    Score,
    /// A line in every number of the summed embedding.
    Embedding,
    /// A Matérn 5/2 function of the bounds of a tile.
    Bounds,
}

impl Kernel {
    /// The kernel of these measured configurations, of which there is at least one.
    pub(super) fn of(points: &[Point]) -> Self {
        let scores: Vec<[f64; 1]> = points.iter().map(|point| [point.score]).collect();
        let score = Scale::of(scores.iter().map(<[f64; 1]>::as_slice));
        let embedding = Scale::of(points.iter().map(|point| point.embedding.as_slice()));
        let bounds = Scale::of(points.iter().map(|point| point.bounds.as_slice()));
        let scaled: Vec<_> = points.iter().map(|point| bounds.apply(&point.bounds, 1.0)).collect();
        let present = [
            (Dense::Score, true),
            (Dense::Embedding, !points[0].embedding.is_empty() && points[0].bounds.is_empty()),
            (Dense::Bounds, !points[0].bounds.is_empty()),
        ];
        let mut kernel = Self {
            score,
            embedding,
            bounds,
            length: median_distance(&scaled),
            measured_with: vec![BTreeMap::new(); points[0].orders.len()],
            measured: Vec::new(),
            dense: present.into_iter().filter_map(|(group, present)| present.then_some(group)).collect(),
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

    pub(super) fn scaled(&self, point: &Point) -> Scaled {
        #[expect(clippy::cast_precision_loss, reason = "embeddings have far fewer than 2^53 numbers")]
        let per_number = (point.embedding.len().max(1) as f64).sqrt().recip();
        Scaled {
            score: self.score.apply(&[point.score], 1.0),
            embedding: self.embedding.apply(&point.embedding, per_number),
            bounds: self.bounds.apply(&point.bounds, self.length.recip()),
            orders: point.orders.clone(),
        }
    }

    /// How alike two configurations are in each dense group.
    pub(super) fn alike<'a>(&'a self, one: &'a Scaled, other: &'a Scaled) -> impl Iterator<Item = f64> + 'a {
        self.dense.iter().map(|group| match group {
            Dense::Score => one.score[0] * other.score[0],
            Dense::Embedding => dot(&one.embedding, &other.embedding),
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
        let (dense, tensors) = variances.split_at(self.dense.len());
        let dense: f64 =
            self.alike(scaled, scaled).zip(dense).map(|(alike, variance)| alike * variance).sum();
        dense + tensors.iter().sum::<f64>()
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
