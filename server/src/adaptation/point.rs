use std::cmp::Ordering;

use hlorank_graph::{ConfigInput, ConfigValues, Digest, FusionBatch, NodeFeatureBatch};

use super::linear_algebra::scalar;
use crate::model::ScoreUnit;

/// What the kernel compares of a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Point {
    /// The score of the model; the logarithm of it if it is seconds.
    pub(crate) score: f64,
    /// `[slots * 3]` the order of dimensions of every tensor, as one number; for fusions `[slots]` 1 if the slot is fused;
    /// else empty.
    pub(crate) orders: Vec<u64>,
    /// `[18]` logarithms of a tile's bounds; else empty.
    pub(crate) bounds: Vec<f64>,
    /// The columns of a feature set: those of the only node, or of several nodes the mean, least and largest value of each; else
    /// empty.
    pub(crate) columns: Vec<f64>,
    /// Digest of the columns of several nodes, which their means do not tell apart.
    pub(crate) nodes: Option<Digest>,
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
                ..Self::default()
            }
        });
        points.collect()
    }

    /// The point of a fusion, given the seconds that a model predicts.
    pub(crate) fn of_fusion(batch: &FusionBatch, config: usize, seconds: f32) -> Self {
        let orders = (0..batch.slots())
            .map(|slot| u64::from(batch.is_fused(config, slot)))
            .collect();
        Self {
            score: log_seconds(seconds),
            orders,
            ..Self::default()
        }
    }

    /// The point of a configuration of a feature set.
    pub(crate) fn of_node_features(
        batch: &NodeFeatureBatch,
        config: usize,
        score: f32,
        unit: ScoreUnit,
    ) -> Self {
        let score = match unit {
            ScoreUnit::Seconds => log_seconds(score),
            ScoreUnit::None => score.into(),
        };
        let values: Vec<f32> = batch.values(config).collect();
        let nodes = (batch.nodes() > 1).then(|| digest(&values));
        let columns = if nodes.is_some() {
            aggregated(&values, batch.columns())
        } else {
            values.iter().map(|&value| value.into()).collect()
        };
        Self {
            score,
            columns,
            nodes,
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
        let numbers = |one: &[f64], other: &[f64]| {
            one.iter()
                .map(|value| value.to_bits())
                .cmp(other.iter().map(|value| value.to_bits()))
        };
        self.orders
            .cmp(&other.orders)
            .then_with(|| numbers(&self.bounds, &other.bounds))
            .then_with(|| numbers(&self.columns, &other.columns))
            .then_with(|| self.nodes.cmp(&other.nodes))
    }

    /// Whether two points are of the same configuration, whatever a model says of it.
    pub(crate) fn is_same_configuration(&self, other: &Self) -> bool {
        self.orders == other.orders
            && self.bounds == other.bounds
            && self.columns == other.columns
            && self.nodes == other.nodes
    }

    /// Numbers that only points of one configuration share.
    pub(crate) fn configuration(&self) -> Vec<u64> {
        let mut numbers = self.orders.clone();
        let values = self.bounds.iter().chain(&self.columns);
        numbers.extend(values.map(|value| value.to_bits()));
        let digest = self
            .nodes
            .iter()
            .flat_map(|digest| digest.0.as_chunks::<8>().0);
        numbers.extend(digest.map(|part| u64::from_le_bytes(*part)));
        numbers
    }
}

/// The mean, least and largest value of each column.
fn aggregated(values: &[f32], columns: usize) -> Vec<f64> {
    let of_column = |column: usize| {
        let nodes = values.iter().skip(column).step_by(columns);
        let of_nodes = || nodes.clone().map(|&value| f64::from(value));
        let mean = of_nodes().sum::<f64>() / scalar(values.len() / columns);
        let least = of_nodes().fold(f64::INFINITY, f64::min);
        let largest = of_nodes().fold(f64::NEG_INFINITY, f64::max);
        [mean, least, largest]
    };
    (0..columns).flat_map(of_column).collect()
}

fn digest(values: &[f32]) -> Digest {
    let bytes: Vec<u8> = values.iter().copied().flat_map(f32::to_le_bytes).collect();
    Digest::of_parts("hlorank 2026 node features", [bytes.as_slice()])
}

fn log_seconds(seconds: f32) -> f64 {
    // A model may predict 0 or infinity, whose logarithm nothing could be learned from.
    let [least, most] = SECONDS;
    libm::log(f64::from(seconds).clamp(least, most))
}

fn coordinates(values: &ConfigValues, start: usize, size: usize) -> (Vec<u64>, Vec<f64>) {
    match values {
        ConfigValues::Int64(values) => {
            let orders = values[start..][..size].chunks(ORDER_VALUES);
            (orders.map(order).collect(), Vec::new())
        }
        ConfigValues::Float32(values) => {
            let (bounds, features) = BOUNDS_OF;
            let kinds = values[start..][..size].chunks(features);
            // The sum and the product of the bounds follow from the bounds.
            let bounds = kinds.flat_map(|kind| kind[..bounds].iter().copied().map(logarithm));
            (Vec::new(), bounds.collect())
        }
    }
}

/// The values −1..5 of an order of dimensions as one number in base 7, as in a `LayoutEntry`.
fn order(values: &[i64]) -> u64 {
    // As in a layout's entry, the last value is the most significant digit, so that the two forms
    // of an order are equal numbers.
    values.iter().rev().fold(0, |number, value| {
        number * 7 + value.saturating_add(1).clamp(0, 6).unsigned_abs()
    })
}

/// Bounds that a tile does not have are 0.
fn logarithm(bound: f32) -> f64 {
    libm::log(f64::from(bound).max(1.0))
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Limits;

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
        assert_eq!(points[0].orders, [2, 0, 0]);
        assert_eq!(points[1].orders, [2 + 7, 0, 0]);
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
    fn columns_of_several_nodes_are_aggregated() {
        let limits = Limits::default();
        let point = |nodes: usize, values: &[f32]| {
            let batch = NodeFeatureBatch::from_values([nodes, 2], values, &limits).unwrap();
            Point::of_node_features(&batch, 0, 0.5, ScoreUnit::None)
        };
        let only = point(1, &[3.0, 4.0]);
        assert_eq!((&only.columns[..], only.nodes), (&[3.0, 4.0][..], None));
        let several = point(2, &[3.0, 4.0, 5.0, 8.0]);
        assert_eq!(several.columns, [4.0, 3.0, 5.0, 6.0, 4.0, 8.0]);
        let exchanged = point(2, &[5.0, 8.0, 3.0, 4.0]);
        assert_eq!(exchanged.columns, several.columns);
        assert!(!exchanged.is_same_configuration(&several));
        assert_ne!(exchanged.configuration(), several.configuration());
    }

    #[test]
    fn a_volume_is_the_product_of_bounds_of_one_kind() {
        let bounds = [[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [4.0; 6], [0.0; 6]].concat();
        let point = Point {
            bounds,
            ..Point::default()
        };
        assert_eq!(point.volumes().collect::<Vec<_>>(), [3.0, 24.0, 0.0]);
    }
}
