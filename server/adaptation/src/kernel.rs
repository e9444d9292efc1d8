use std::{collections::BTreeMap, sync::Arc};

use hlorank_graph::pace;

use super::{
    Measurements, Point, Prior,
    column_scale::ColumnScale,
    covariance::{Columns, Gram, Partitions},
    lengths::{Lengths, Observations, matern},
    linear_algebra::{LANES, add_scaled},
};
use crate::statistics::{centered, mean, squared_distance};

/// The groups of properties whose variance is learned, and how alike two configurations are in each.
///
/// Scores and bounds have fixed units. Units that follow from the measured configurations would be wrong for few of them: three
/// scores that happen to be alike would make the score look important.
///
/// The score is the first group; the coordinates are the second if there are some. These two are dense, and each tensor is a group
/// of its own.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// Mean of the measured configurations' scores.
    pub(super) mean_score: f64,
    /// How much a score has to rise for ln(seconds) to rise by the spread.
    pub(super) score_unit: f64,
    /// Per tensor, the measured configurations that have an order of dimensions.
    pub(super) measured_with: Vec<BTreeMap<u32, Vec<usize>>>,
    pub(super) measured: Vec<ScaledPoint>,
    /// `[measured / 8, coordinates, 8]`, so that a processor computes several distances at a time.
    coordinates: Vec<[f64; LANES]>,
    has_coordinates: bool,
    pub(super) partitions: Partitions,
    /// If there are fewer columns than measured configurations, and no coordinates.
    pub(super) columns: Option<Columns>,
    /// How the columns of a feature set become coordinates, and what was learned of it; `None` for other tasks.
    pub(super) scale: Option<(ColumnScale, Lengths)>,
}

/// A configuration in the units of the kernel.
#[derive(Clone, Debug)]
pub(super) struct ScaledPoint {
    pub(super) score: f64,
    /// The bounds of a tile and its volumes, or the columns of a feature set, in the unit of their length.
    coordinates: Vec<f64>,
    /// `[measured]` how alike its coordinates are to those of each measured configuration; empty for a measured one.
    alike: Vec<f64>,
    orders: Arc<[u32]>,
}

/// Length scale of the Matérn function, in logarithms of bounds and volumes.
const LENGTH_SCALE: f64 = 3.5;

/// How much a volume counts in a squared distance, compared with a bound. The number of tiles follows from the volume, and so
/// tiles of equal volume are more alike than their bounds alone say.
const VOLUME: f64 = 0.75;

/// Maximum number of measurements that lengths of columns are learned from, since that takes many steps.
const TEACH_LENGTHS: usize = 64;

impl Kernel {
    /// The kernel of measured configurations, of which there is at least one. Those of a feature set are alike if their columns are.
    pub(super) fn new(measurements: &Measurements, prior: Prior) -> Self {
        let (points, score_unit) = (&measurements.points, prior.spread / prior.slope);
        if points[0].columns.is_empty() {
            return Self::of_points(points, score_unit, None);
        }
        let mut scale = ColumnScale::new(points, &measurements.times);
        let teaching = measurements.clone().at_most(TEACH_LENGTHS);
        let some = &teaching.points;
        let coordinates = some.iter().map(|point| scale.coordinates(point));
        let scores = some.iter().map(|point| point.score / score_unit);
        let learned = Lengths::new(&Observations {
            coordinates: &coordinates.collect::<Vec<_>>(),
            scores: &centered(scores.collect()),
            // What the score is expected to explain would otherwise shorten the lengths.
            residuals: &centered(teaching.beside_scores(prior.slope)),
            counts: &teaching.counts,
            spread: prior.spread,
        });
        scale.lengthen(&learned.of_columns);
        Self::of_points(points, score_unit, Some((scale, learned)))
    }

    /// The kernel of points, with a scale if they have columns. Scores count in `score_unit`.
    pub(super) fn of_points(
        points: &[Point],
        score_unit: f64,
        scale: Option<(ColumnScale, Lengths)>,
    ) -> Self {
        let scores: Vec<f64> = points.iter().map(|point| point.score).collect();
        let orders: Vec<&[u32]> = points.iter().map(|point| &point.orders[..]).collect();
        let mut measured_with = vec![BTreeMap::<u32, Vec<usize>>::new(); orders[0].len()];
        for (number, orders) in orders.iter().enumerate() {
            for (with, &order) in measured_with.iter_mut().zip(*orders) {
                with.entry(order).or_default().push(number);
            }
        }
        let mut kernel = Self {
            mean_score: mean(&scores),
            score_unit,
            measured_with,
            measured: Vec::new(),
            coordinates: Vec::new(),
            has_coordinates: scale.is_some() || !points[0].bounds.is_empty(),
            partitions: Partitions::new(&orders),
            columns: None,
            scale,
        };
        // Only once it has its units can the kernel scale the points.
        kernel.measured = points.iter().map(|point| kernel.scaled(point)).collect();
        for some in kernel.measured.chunks(LANES) {
            for place in 0..some[0].coordinates.len() {
                // Behind the last point there are zeros.
                let mut values = [0.0; LANES];
                for (value, point) in values.iter_mut().zip(some) {
                    *value = point.coordinates[place];
                }
                kernel.coordinates.push(values);
            }
        }
        // A function of coordinates has no columns.
        if !kernel.has_coordinates && kernel.partitions.columns() < points.len() {
            let scores = kernel.measured.iter().map(|each| each.score).collect();
            kernel.columns = Some(Columns::new(scores, &kernel.partitions));
        }
        kernel
    }

    /// Number of rows of the matrices that learning takes: the number of columns or of measured configurations.
    pub(super) fn size(&self) -> usize {
        match self.columns {
            Some(_) => self.partitions.columns(),
            None => self.measured.len(),
        }
    }

    /// Returns the variance of each dense group and of each tensor, given those of the dense groups and partitions.
    pub(super) fn of_tensors(&self, variances: &[f64]) -> Vec<f64> {
        let (dense, partitions) = variances.split_at(self.dense());
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
            let orders = self.measured_with.iter().zip(&*scaled.orders);
            let tensors = self.partitions.of_tensor.iter().zip(orders);
            // Any configuration with the order would do, because all of them are in one part.
            let alike = tensors.map(|(&partition, (with, order))| {
                let first = with.get(order).and_then(|numbers| numbers.first().copied());
                (partition, first)
            });
            return columns.relations(scaled.score, alike);
        }
        let mut covariances = self.covariances(scaled, variances);
        for covariance in &mut covariances {
            *covariance += offset;
        }
        covariances
    }

    /// Number of families that share the variance evenly: every dense group is one, and so are all tensors together.
    pub(super) fn families(&self) -> usize {
        self.dense() + usize::from(!self.measured_with.is_empty())
    }

    /// Number of dense groups, which come first.
    pub(super) fn dense(&self) -> usize {
        1 + usize::from(self.has_coordinates)
    }

    pub(super) fn scaled(&self, point: &Point) -> ScaledPoint {
        let coordinates = if let Some((scale, _)) = &self.scale {
            scale.coordinates(point)
        } else {
            // The bounds of a tile and its volumes; nothing for other tasks. A squared distance has the square of this factor.
            let volumes = point.volumes().map(|volume| volume * VOLUME.sqrt());
            let coordinates = point.bounds.iter().copied().chain(volumes);
            coordinates.map(|each| each / LENGTH_SCALE).collect()
        };
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

    /// How alike the measured configurations are, pair by pair.
    pub(super) fn gram(&self) -> Gram<'_> {
        let count = self.measured.len();
        let mut dense = vec![Vec::with_capacity(count * count); self.dense()];
        for one in pace::in_steps(1, &self.measured) {
            dense[0].extend(self.measured.iter().map(|other| one.score * other.score));
            if let Some(of_coordinates) = dense.get_mut(1) {
                of_coordinates.extend(self.alike_to_measured(&one.coordinates));
            }
        }
        Gram {
            size: count,
            dense,
            partitions: &self.partitions.all,
        }
    }

    /// The covariance of a configuration that is not a measured one with every measured one, given the variance of each group.
    pub(super) fn covariances(&self, scaled: &ScaledPoint, variances: &[f64]) -> Vec<f64> {
        let (dense, tensors) = variances.split_at(self.dense());
        let of_score = dense[0] * scaled.score;
        let others = self.measured.iter();
        let mut covariances: Vec<f64> = others.map(|other| of_score * other.score).collect();
        if let Some(&of_coordinates) = dense.get(1) {
            add_scaled(&mut covariances, &scaled.alike, of_coordinates);
        }
        // Looking up who has the same order skips most pairs: two configurations share few orders.
        for ((with, order), variance) in self.measured_with.iter().zip(&*scaled.orders).zip(tensors)
        {
            for &number in with.get(order).into_iter().flatten() {
                covariances[number] += variance;
            }
        }
        covariances
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_equal_volume_are_more_alike() {
        let kernel = Kernel::of_points(&[Point::of_bounds(&[1.0, 2.0])], 1.0, None);
        let alike = |bounds: &[f64]| {
            let scaled = kernel.scaled(&Point::of_bounds(bounds));
            kernel.covariances(&scaled, &[0.0, 1.0])[0]
        };
        assert_eq!(alike(&[1.0, 2.0]), 1.0);
        assert!(
            alike(&[2.0, 1.0]) > alike(&[2.0, 3.0]),
            "both bounds differ by as much"
        );
    }

    #[test]
    fn tensors_are_alike_if_their_orders_are_equal() {
        let points = [
            Point::of_orders(0.0, &[1, 2]),
            Point::of_orders(2.0, &[1, 3]),
        ];
        let kernel = Kernel::of_points(&points, 2.0, None);
        assert_eq!(
            (
                kernel.dense(),
                kernel.measured_with.len(),
                kernel.families()
            ),
            (1, 2, 2)
        );
        let candidate = kernel.scaled(&Point::of_orders(1.0, &[1, 3]));
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
