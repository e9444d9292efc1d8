use std::{cmp::Ordering, sync::Arc};

use hlorank_graph::{ConfigInput, ConfigValues, Configurations, FusionBatch};

use super::node_columns::NodeColumns;
use crate::model::ScoreUnit;

/// What the kernel compares of a configuration. Its clones share everything but the score.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// The score of the model; the logarithm of it if it is seconds.
    pub(crate) score: f64,
    /// `[slots * 3]` the order of dimensions of every tensor, as one number; for fusions `[slots]` 1 if the slot is fused;
    /// else empty.
    pub(crate) orders: Arc<[u32]>,
    /// `[18]` logarithms of a tile's bounds; else empty.
    pub(crate) bounds: Arc<[f64]>,
    /// The columns of a feature set; else empty.
    pub(crate) columns: NodeColumns,
}

/// Number of values of an order of dimensions.
const ORDER_VALUES: usize = 6;

/// Least and most seconds of a predicted run time.
const SECONDS: [f64; 2] = [1e-12, 1e9];

/// A tile's features are, for each kind of bounds, as many bounds, their sum and their product.
const BOUNDS_OF: (usize, usize) = (6, 8);

impl Point {
    /// The points of some configurations, given their encoder input and scores.
    pub(crate) fn of_input(input: &ConfigInput, scores: impl Iterator<Item = f32>) -> Vec<Self> {
        let size: usize = input.shape[1..].iter().product();
        let points = scores.enumerate().map(|(number, score)| {
            let (orders, bounds) = coordinates(&input.values, number * size, size);
            Self {
                score: score.into(),
                orders,
                bounds,
                columns: NodeColumns::default(),
            }
        });
        points.collect()
    }

    /// The point of a fusion, given the seconds that a model predicts.
    pub(crate) fn of_fusion(batch: &FusionBatch, config: usize, seconds: f32) -> Self {
        let orders = (0..batch.slots())
            .map(|slot| u32::from(batch.is_fused(config, slot)))
            .collect();
        Self {
            score: log_seconds(seconds),
            orders,
            ..Self::default()
        }
    }

    /// The point of a configuration of a feature set.
    pub(crate) fn of_node_features(
        configurations: &Arc<Configurations>,
        config: usize,
        score: f32,
        unit: ScoreUnit,
    ) -> Self {
        let score = match unit {
            ScoreUnit::Seconds => log_seconds(score),
            ScoreUnit::None => score.into(),
        };
        Self {
            score,
            columns: NodeColumns::new(Arc::clone(configurations), config),
            ..Self::default()
        }
    }

    /// `[3]` the logarithm of the product of each kind of bounds.
    pub(super) fn volumes(&self) -> impl Iterator<Item = f64> + '_ {
        self.bounds
            .chunks(BOUNDS_OF.0)
            .map(|kind| kind.iter().sum())
    }

    /// A total order of points: by configuration, then by score.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.compare_configuration(other)
            .then_with(|| self.score.total_cmp(&other.score))
    }

    /// A total order of configurations, whatever a model says of them.
    pub(crate) fn compare_configuration(&self, other: &Self) -> Ordering {
        // The bits are compared, because they are in a total order, unlike the values.
        let bits = |bounds: &[f64]| {
            bounds
                .iter()
                .map(|bound| bound.to_bits())
                .collect::<Vec<_>>()
        };
        self.orders
            .cmp(&other.orders)
            .then_with(|| bits(&self.bounds).cmp(&bits(&other.bounds)))
            .then_with(|| self.columns.compare(&other.columns))
    }

    /// Whether two points are of the same configuration, whatever a model says of it.
    pub(crate) fn is_same_configuration(&self, other: &Self) -> bool {
        self.orders == other.orders && self.bounds == other.bounds && self.columns == other.columns
    }

    /// Numbers that only points of one configuration share.
    pub(crate) fn configuration(&self) -> impl Iterator<Item = u64> + '_ {
        let orders = self.orders.iter().copied().map(u64::from);
        let bounds = self.bounds.iter().map(|bound| bound.to_bits());
        orders.chain(bounds).chain(self.columns.bits())
    }

    /// Number of everything that is known of it but its score.
    pub(super) fn features(&self) -> usize {
        self.columns.len() + self.bounds.len() + self.orders.len()
    }

    /// One of its features.
    pub(super) fn feature(&self, place: usize) -> f64 {
        let columns = self.columns.len();
        match place.checked_sub(columns) {
            None => self.columns.value(place),
            Some(place) => match self.bounds.get(place) {
                Some(&bound) => bound,
                None => self.orders[place - self.bounds.len()].into(),
            },
        }
    }

    /// Bytes of points, with the batches that they keep.
    pub(super) fn bytes<'a>(points: impl IntoIterator<Item = &'a Self>) -> usize {
        let mut bytes = 0;
        let mut last = &NodeColumns::default();
        for point in points {
            bytes += size_of::<Self>() + size_of_val(&*point.orders) + size_of_val(&*point.bounds);
            // The points of one call follow each other, and share its batch.
            bytes += point.columns.batch_bytes(last);
            last = &point.columns;
        }
        bytes
    }
}

fn log_seconds(seconds: f32) -> f64 {
    // A model may predict 0 or infinity, whose logarithm nothing could be learned from.
    let [least, most] = SECONDS;
    libm::log(f64::from(seconds).clamp(least, most))
}

fn coordinates(values: &ConfigValues, start: usize, size: usize) -> (Arc<[u32]>, Arc<[f64]>) {
    match values {
        ConfigValues::Int64(values) => {
            let orders = values[start..][..size].chunks(ORDER_VALUES);
            (orders.map(order).collect(), Arc::default())
        }
        ConfigValues::Float32(values) => {
            let (bounds, features) = BOUNDS_OF;
            let kinds = values[start..][..size].chunks(features);
            // The sum and the product of the bounds follow from the bounds.
            let bounds = kinds.flat_map(|kind| kind[..bounds].iter().copied().map(logarithm));
            (Arc::default(), bounds.collect())
        }
    }
}

/// The values −1..5 of an order of dimensions as one number in base 7, as in a `LayoutEntry`.
fn order(values: &[i64]) -> u32 {
    // As in a layout's entry, the last value is the most significant digit, so that the two forms
    // of an order are equal numbers.
    values.iter().rev().fold(0, |number, value| {
        number * 7 + u32::try_from(value.saturating_add(1).clamp(0, 6)).unwrap_or_default()
    })
}

/// Bounds that a tile does not have are 0.
fn logarithm(bound: f32) -> f64 {
    libm::log(f64::from(bound).max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_every_tensor_is_one_number() {
        let mut values = vec![-1; 36];
        values[0] = 1;
        values[18..20].copy_from_slice(&[1, 0]);
        let input = ConfigInput {
            shape: vec![2, 1, 18],
            values: ConfigValues::Int64(values),
        };
        let points = Point::of_input(&input, [0.5_f32, 2.0].into_iter());
        assert_eq!(*points[0].orders, [2, 0, 0]);
        assert_eq!(*points[1].orders, [2 + 7, 0, 0]);
        assert_eq!((points[0].score, points[1].score), (0.5, 2.0));
        assert!(points[0].bounds.is_empty());
    }

    #[test]
    fn a_tile_has_the_logarithms_of_its_bounds() {
        let mut values = vec![0.0_f32; 24];
        (values[0], values[6], values[8]) = (4.0, 99.0, 1.0);
        let input = ConfigInput {
            shape: vec![1, 24],
            values: ConfigValues::Float32(values),
        };
        let points = Point::of_input(&input, [1.0_f32].into_iter());
        assert_eq!(points[0].bounds.len(), 18);
        assert_eq!(points[0].bounds[0], libm::log(4.0));
        assert!(points[0].bounds[1..].iter().all(|&bound| bound == 0.0));
    }

    #[test]
    fn a_volume_is_the_product_of_bounds_of_one_kind() {
        let bounds = [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [4.0; 6], [0.0; 6]].concat();
        let point = Point {
            bounds: bounds.into(),
            ..Point::default()
        };
        assert_eq!(point.volumes().collect::<Vec<_>>(), [3.0, 24.0, 0.0]);
    }
}
