use std::{collections::BTreeMap, sync::Arc};

use super::{
    Measurements, Point, Prior,
    column_scale::ColumnScale,
    columns::Columns,
    lengths::{Lengths, Observations},
    linear_algebra::{LANES, add_scaled},
    matern::matern,
    partitions::Partitions,
};
use crate::statistics::{centered, mean, squared_distance};

/// The groups of properties whose variance is learned, and how alike two configurations are in each.
///
/// Scores and bounds have fixed units. Units that follow from the measured configurations would be wrong for few of them: three
/// scores that happen to be alike would make the score look important.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// Mean of the measured configurations' scores.
    mean_score: f64,
    score_unit: f64,
    /// Per tensor, the measured configurations that have an order of dimensions.
    measured_with: Vec<BTreeMap<u32, Vec<usize>>>,
    measured: Vec<ScaledPoint>,
    /// `[measured / 8, coordinates, 8]`, so that a processor computes several distances at a time.
    coordinates: Vec<[f64; LANES]>,
    dense: Vec<Dense>,
    partitions: Partitions,
    /// If there are fewer columns than measured configurations, and no bounds.
    columns: Option<Columns>,
    /// How the columns of a feature set become coordinates; `None` for other tasks.
    scale: Option<ColumnScale>,
    /// The variances that were learned together with the scale.
    expected: Option<ExpectedVariances>,
}

/// Variances that are nearly right, so that few steps are left to learn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedVariances {
    /// What the columns explain.
    pub(super) columns: f64,
    /// What a line in the score explains.
    pub(super) score: f64,
    /// One run.
    pub(super) noise: f64,
}

/// A configuration in the units of the kernel.
#[derive(Clone, Debug)]
pub(super) struct ScaledPoint {
    score: f64,
    /// The bounds of a tile and its volumes, or the columns of a feature set, in the unit of their length.
    coordinates: Vec<f64>,
    /// `[measured]` how alike its coordinates are to those of each measured configuration; empty for a measured one.
    alike: Vec<f64>,
    orders: Arc<[u32]>,
}

/// A group of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dense {
    /// A line in the score.
    Score,
    /// A Matérn 5/2 function of the coordinates.
    Coordinates,
}

/// Length scale of the Matérn function, in logarithms of bounds and volumes.
const LENGTH_SCALE: f64 = 3.5;

/// How much a volume counts in a squared distance, compared with a bound. The number of tiles follows from the volume, and so
/// tiles of equal volume are more alike than their bounds alone say.
const VOLUME: f64 = 0.75;

/// Maximum number of measurements that lengths of columns are learned from, since that takes many steps.
const TEACH_LENGTHS: usize = 64;

/// How much a score's slope may differ, relative to it.
const SLOPE_DIFFERS: f64 = 0.3;

impl Kernel {
    /// The kernel of measured configurations, of which there is at least one.
    pub(super) fn of(measurements: &Measurements, prior: Prior) -> Self {
        let points = &measurements.points;
        if points[0].columns.is_empty() {
            return Self::of_points(points, prior.score_unit(), None);
        }
        Self::of_feature_set(measurements, prior)
    }

    /// The same of configurations of a feature set, which are alike if their columns are.
    fn of_feature_set(measurements: &Measurements, prior: Prior) -> Self {
        let points = &measurements.points;
        let mut scale = ColumnScale::of(points, &measurements.times);
        let learned = learn_lengths(&scale, measurements, prior);
        scale.lengthen(&learned.of_columns);
        let mut kernel = Self::of_points(points, prior.score_unit(), Some(scale));
        kernel.expected = Some(ExpectedVariances {
            columns: learned.amplitude,
            score: (SLOPE_DIFFERS * prior.spread).powi(2),
            noise: learned.noise,
        });
        kernel
    }

    /// The kernel of points, with a scale if they have columns. Scores count in `score_unit`.
    pub(super) fn of_points(points: &[Point], score_unit: f64, scale: Option<ColumnScale>) -> Self {
        let has_coordinates = scale.is_some() || !points[0].bounds.is_empty();
        let scores: Vec<f64> = points.iter().map(|point| point.score).collect();
        let orders: Vec<&[u32]> = points.iter().map(|point| &point.orders[..]).collect();
        let mut kernel = Self {
            mean_score: mean(&scores),
            score_unit,
            measured_with: measured_with(&orders),
            measured: Vec::new(),
            coordinates: Vec::new(),
            dense: dense_groups(has_coordinates),
            partitions: Partitions::of(&orders),
            columns: None,
            scale,
            expected: None,
        };
        // Only once it has its units can the kernel scale the points.
        kernel.measured = points.iter().map(|point| kernel.scaled(point)).collect();
        kernel.coordinates = together(&kernel.measured);
        kernel.columns = kernel.few_columns();
        kernel
    }

    /// The measured configurations as columns, if there are fewer columns than configurations. A
    /// function of coordinates has no columns.
    fn few_columns(&self) -> Option<Columns> {
        let count = Columns::count(&self.partitions);
        if self.dense != [Dense::Score] || count >= self.measured.len() {
            return None;
        }
        let scores = self.measured.iter().map(|each| each.score).collect();
        Some(Columns::of(scores, &self.partitions))
    }

    pub(super) fn measured(&self) -> &[ScaledPoint] {
        &self.measured
    }

    pub(super) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    pub(super) fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    /// Whether configurations are alike by the columns of a feature set.
    pub(super) fn has_scale(&self) -> bool {
        self.scale.is_some()
    }

    /// Variances that are nearly right, if they were learned together with the scale of columns.
    pub(super) fn expected(&self) -> Option<ExpectedVariances> {
        self.expected
    }

    /// Number of rows of the matrices that learning takes: the number of columns or of measured configurations.
    pub(super) fn size(&self) -> usize {
        self.columns
            .as_ref()
            .map_or(self.measured.len(), |_| Columns::count(&self.partitions))
    }

    /// Returns the variance of each dense group and of each tensor, given those of the dense groups and partitions.
    pub(super) fn of_tensors(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense.len());
        let numbers = self.partitions.of_tensor.iter();
        let of_tensor = numbers.map(|&number| partitions[number]);
        dense.iter().copied().chain(of_tensor).collect()
    }

    /// How a configuration is related to the measured ones: by its columns, or by its covariances with them.
    pub(super) fn relations(
        &self,
        scaled: &ScaledPoint,
        variances: &[f64],
        offset: f64,
    ) -> Vec<f64> {
        if let Some(columns) = &self.columns {
            return columns.relations(scaled.score, self.alike_by_order(&scaled.orders));
        }
        let mut covariances = self.covariances(scaled, variances);
        for covariance in &mut covariances {
            *covariance += offset;
        }
        covariances
    }

    /// For each tensor the number of its partition, and a measured configuration with this order if
    /// there is one.
    fn alike_by_order(&self, orders: &[u32]) -> impl Iterator<Item = (usize, Option<usize>)> {
        let orders = self.measured_with.iter().zip(orders);
        let tensors = self.partitions.of_tensor.iter().zip(orders);
        // Any configuration with the order would do, because all of them are in one part.
        tensors.map(|(&partition, (with, order))| {
            let first = with.get(order).and_then(|numbers| numbers.first().copied());
            (partition, first)
        })
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
    pub(super) fn by_order(&self, value: impl Fn(usize, usize) -> f64) -> Vec<BTreeMap<u32, f64>> {
        let tensors = self.measured_with.iter().enumerate();
        let sums = |(tensor, with): (usize, &BTreeMap<u32, Vec<usize>>)| {
            let sum = |numbers: &[usize]| numbers.iter().map(|&number| value(tensor, number)).sum();
            with.iter()
                .map(|(&order, numbers)| (order, sum(numbers)))
                .collect()
        };
        tensors.map(sums).collect()
    }

    /// Returns what a line in the score adds per unit of the model's score, and at a score of 0, if its value at the measured
    /// configurations is weighted so.
    pub(super) fn line(&self, weights: &[f64]) -> (f64, f64) {
        // Scores count from their mean, which the value at a score of 0 takes back.
        let measured = self.measured.iter().zip(weights);
        let values = measured.map(|(each, weight)| each.score * weight);
        let rise = values.sum::<f64>() / self.score_unit;
        (rise, -rise * self.mean_score)
    }

    pub(super) fn scaled(&self, point: &Point) -> ScaledPoint {
        let coordinates = self
            .scale
            .as_ref()
            .map_or_else(|| tile_coordinates(point), |scale| scale.coordinates(point));
        ScaledPoint {
            score: (point.score - self.mean_score) / self.score_unit,
            alike: self.alike_to_measured(&coordinates),
            coordinates,
            orders: Arc::clone(&point.orders),
        }
    }

    /// `[measured]` how alike coordinates are to those of each measured configuration.
    fn alike_to_measured(&self, coordinates: &[f64]) -> Vec<f64> {
        // Eight distances are computed at a time: a coordinate of eight points lies together, so
        // that the inner loops become vector instructions.
        let mut alike = Vec::with_capacity(self.measured.len() + LANES);
        for others in self.coordinates.chunks_exact(coordinates.len().max(1)) {
            let mut squared = [0.0; LANES];
            for (own, others) in coordinates.iter().zip(others) {
                for (squared, other) in squared.iter_mut().zip(others) {
                    *squared += (own - other) * (own - other);
                }
            }
            for squared in &mut squared {
                *squared = matern(*squared);
            }
            alike.extend(squared);
        }
        // The last eight may be filled up with points that do not exist. Without coordinates, all
        // are alike.
        alike.resize(self.measured.len(), matern(0.0));
        alike
    }

    /// `[dense groups, measured]` how alike a measured configuration is to each measured one.
    pub(super) fn alike(&self, one: &ScaledPoint) -> impl Iterator<Item = Vec<f64>> {
        self.dense.iter().map(|group| match group {
            Dense::Score => {
                let others = self.measured.iter();
                others.map(|other| one.score * other.score).collect()
            }
            Dense::Coordinates => self.alike_to_measured(&one.coordinates),
        })
    }

    /// The covariance of a configuration that is not a measured one with every measured one, given the variance of each group.
    pub(super) fn covariances(&self, scaled: &ScaledPoint, variances: &[f64]) -> Vec<f64> {
        let (dense, tensors) = variances.split_at(self.dense.len());
        let of_score = dense[0] * scaled.score;
        let others = self.measured.iter();
        let mut covariances: Vec<f64> = others.map(|other| of_score * other.score).collect();
        if let Some(&of_coordinates) = dense.get(1) {
            add_scaled(&mut covariances, &scaled.alike, of_coordinates);
        }
        self.add_of_orders(&mut covariances, &scaled.orders, tensors);
        covariances
    }

    /// Adds the variance of each tensor to the covariances with the measured configurations that
    /// have its order.
    #[inline]
    fn add_of_orders(&self, covariances: &mut [f64], orders: &[u32], variances: &[f64]) {
        // Looking up who has the same order skips most pairs: two configurations share few orders.
        for ((with, order), variance) in self.measured_with.iter().zip(orders).zip(variances) {
            for &number in with.get(order).into_iter().flatten() {
                covariances[number] += variance;
            }
        }
    }

    /// The covariance of two configurations before anything is measured.
    pub(super) fn between(&self, one: &ScaledPoint, other: &ScaledPoint, variances: &[f64]) -> f64 {
        let (dense, tensors) = variances.split_at(self.dense());
        let coordinates = dense.get(1).map_or(0.0, |variance| {
            variance * matern(squared_distance(&one.coordinates, &other.coordinates))
        });
        let orders = one.orders.iter().zip(&*other.orders).zip(tensors);
        let orders = orders.map(|((one, other), variance)| f64::from(one == other) * variance);
        dense[0] * one.score * other.score + coordinates + orders.sum::<f64>()
    }
}

fn dense_groups(has_coordinates: bool) -> Vec<Dense> {
    let mut dense = vec![Dense::Score];
    dense.extend(has_coordinates.then_some(Dense::Coordinates));
    dense
}

/// `[tensors]` the configurations that have each order, given `[configurations][tensors]` the orders.
fn measured_with(orders: &[&[u32]]) -> Vec<BTreeMap<u32, Vec<usize>>> {
    let mut measured_with = vec![BTreeMap::<u32, Vec<usize>>::new(); orders[0].len()];
    for (number, orders) in orders.iter().enumerate() {
        for (with, &order) in measured_with.iter_mut().zip(*orders) {
            with.entry(order).or_default().push(number);
        }
    }
    measured_with
}

/// `[points / 8, coordinates, 8]` the coordinates of points, and 0 behind the last.
fn together(points: &[ScaledPoint]) -> Vec<[f64; LANES]> {
    let count = points.first().map_or(0, |point| point.coordinates.len());
    let mut together = Vec::with_capacity(points.len().div_ceil(LANES) * count);
    for some in points.chunks(LANES) {
        for place in 0..count {
            let mut values = [0.0; LANES];
            for (value, point) in values.iter_mut().zip(some) {
                *value = point.coordinates[place];
            }
            together.push(values);
        }
    }
    together
}

/// The bounds of a tile and its volumes; nothing for other tasks.
fn tile_coordinates(point: &Point) -> Vec<f64> {
    let bounds = point.bounds.iter().copied();
    // A squared distance has the square of this factor.
    let volumes = point.volumes().map(|volume| volume * VOLUME.sqrt());
    let coordinates = bounds.chain(volumes);
    coordinates.map(|each| each / LENGTH_SCALE).collect()
}

/// Learns the lengths of columns in units of a scale. Times are expected to rise with the score.
fn learn_lengths(scale: &ColumnScale, measurements: &Measurements, prior: Prior) -> Lengths {
    let measurements = measurements.clone().at_most(TEACH_LENGTHS);
    let points = &measurements.points;
    let coordinates = points.iter().map(|point| scale.coordinates(point));
    let scores = points.iter().map(|point| point.score / prior.score_unit());
    Lengths::of(&Observations {
        coordinates: &coordinates.collect::<Vec<_>>(),
        scores: &centered(scores.collect()),
        // What the score is expected to explain would otherwise shorten the lengths.
        residuals: &centered(measurements.beside_scores(prior.slope)),
        counts: &measurements.counts,
        spread: prior.spread,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_equal_volume_are_more_alike() {
        let tile = |bounds: &[f64]| Point {
            bounds: bounds.into(),
            ..Point::default()
        };
        let kernel = Kernel::of_points(&[tile(&[1.0, 2.0])], 1.0, None);
        let alike =
            |bounds: &[f64]| kernel.covariances(&kernel.scaled(&tile(bounds)), &[0.0, 1.0])[0];
        assert_eq!(alike(&[1.0, 2.0]), 1.0);
        assert!(
            alike(&[2.0, 1.0]) > alike(&[2.0, 3.0]),
            "both bounds differ by as much"
        );
    }

    #[test]
    fn tensors_are_alike_if_their_orders_are_equal() {
        let point = |orders: &[u32], score| Point {
            score,
            orders: orders.into(),
            ..Point::default()
        };
        let kernel = Kernel::of_points(&[point(&[1, 2], 0.0), point(&[1, 3], 2.0)], 2.0, None);
        assert_eq!(
            (kernel.dense(), kernel.tensors(), kernel.families()),
            (1, 2, 2)
        );
        let candidate = kernel.scaled(&point(&[1, 3], 1.0));
        assert_eq!(
            kernel.covariances(&candidate, &[0.5, 0.25, 0.125]),
            [0.25, 0.375]
        );
        assert_eq!(
            kernel.between(&candidate, &candidate, &[0.5, 0.25, 0.125]),
            0.375
        );
    }
}
