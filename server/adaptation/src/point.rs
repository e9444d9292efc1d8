use std::{cmp::Ordering, iter, ptr, sync::Arc};

use hlorank_graph::{ConfigInput, ConfigValues, Configurations, FusionBatch, NodeFeatureBatch};

use crate::{prior::ScoreUnit, statistics::scalar};

/// What the kernel compares of a configuration. Its clones share everything but the score.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// The score of the model; the logarithm of it if it is seconds.
    pub score: f64,
    /// `[slots * 3]` the order of dimensions of every tensor, as one number; for fusions `[slots]` 1 if the slot is fused;
    /// else empty.
    pub orders: Arc<[u32]>,
    /// `[18]` logarithms of a tile's bounds; else empty.
    pub bounds: Arc<[f64]>,
    /// The columns of a feature set; else empty.
    pub columns: NodeColumns,
}

/// The columns of a configuration of a feature set: those of the only node, or of several nodes the mean, least and largest value
/// of each.
///
/// They stay in the batch, which has each distinct row once, and are computed when they are asked for: a small batch of equal rows
/// stands for many columns of many configurations.
#[derive(Clone, Debug, Default)]
pub struct NodeColumns(Option<(Arc<Configurations>, usize)>);

/// Number of values of an order of dimensions.
const ORDER_VALUES: usize = 6;

/// Least and most seconds of a predicted run time.
const SECONDS: [f64; 2] = [1e-12, 1e9];

/// A tile's features are, for each kind of bounds, as many bounds, their sum and their product.
const BOUNDS_OF: (usize, usize) = (6, 8);

/// Number of columns that become of a column of several nodes.
const AGGREGATES: usize = 3;

impl Point {
    /// The points of some configurations, given their encoder input and scores.
    pub fn of_input(input: &ConfigInput, scores: impl Iterator<Item = f32>) -> Vec<Self> {
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
    pub fn of_fusion(batch: &FusionBatch, config: usize, seconds: f32) -> Self {
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
    pub fn of_node_features(
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
    pub fn compare(&self, other: &Self) -> Ordering {
        self.compare_configuration(other)
            .then_with(|| self.score.total_cmp(&other.score))
    }

    /// A total order of configurations, whatever a model says of them.
    pub fn compare_configuration(&self, other: &Self) -> Ordering {
        // The bits are compared, because they are in a total order, unlike the values.
        let [own, others] =
            [self, other].map(|each| each.bounds.iter().map(|bound| bound.to_bits()));
        self.orders
            .cmp(&other.orders)
            .then_with(|| own.cmp(others))
            .then_with(|| self.columns.compare(&other.columns))
    }

    /// Whether two points are of the same configuration, whatever a model says of it.
    pub fn is_same_configuration(&self, other: &Self) -> bool {
        self.orders == other.orders && self.bounds == other.bounds && self.columns == other.columns
    }

    /// Numbers that only points of one configuration share.
    pub fn configuration(&self) -> impl Iterator<Item = u64> + '_ {
        let orders = self.orders.iter().copied().map(u64::from);
        let bounds = self.bounds.iter().map(|bound| bound.to_bits());
        orders.chain(bounds).chain(self.columns.bits())
    }

    /// The values of the first node of a configuration of a feature set; else empty.
    pub fn row(&self) -> Vec<f32> {
        let batch = self.columns.batch();
        let row = batch.and_then(|(batch, config)| batch.node_rows(config).next());
        row.map_or_else(Vec::new, <[f32]>::to_vec)
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
            // The sum and the product of the bounds follow from the bounds. Those that a tile does not have are 0.
            let bounds = kinds.flat_map(|kind| &kind[..bounds]);
            let bounds = bounds.map(|&bound| libm::log(f64::from(bound).max(1.0)));
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

impl NodeColumns {
    /// The columns of a configuration; none if it is not of a feature set.
    pub(super) fn new(configurations: Arc<Configurations>, config: usize) -> Self {
        Self(Some((configurations, config)))
    }

    fn batch(&self) -> Option<(&NodeFeatureBatch, usize)> {
        let (configurations, config) = self.0.as_ref()?;
        match &**configurations {
            Configurations::FeatureSet(batch) => Some((batch, *config)),
            _ => None,
        }
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.batch().map_or(0, |(batch, _)| match batch.nodes() {
            1 => batch.columns(),
            _ => AGGREGATES * batch.columns(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a column.
    pub(super) fn value(&self, place: usize) -> f64 {
        let Some((batch, config)) = self.batch() else {
            return 0.0;
        };
        if batch.nodes() == 1 {
            let mut rows = batch.node_rows(config);
            return rows.next().map_or(0.0, |row| row[place].into());
        }
        let of_nodes = batch.node_rows(config);
        let of_nodes = of_nodes.map(|row| f64::from(row[place / AGGREGATES]));
        match place % AGGREGATES {
            0 => of_nodes.sum::<f64>() / scalar(batch.nodes()),
            1 => of_nodes.fold(f64::INFINITY, f64::min),
            _ => of_nodes.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// A total order of the columns of all nodes, which their aggregates do not tell apart.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let (Some(own), Some(other)) = (self.batch(), other.batch()) else {
            return self.0.is_some().cmp(&other.0.is_some());
        };
        let [mut own, mut other] = [own, other].map(|(batch, config)| batch.node_rows(config));
        loop {
            let order = match (own.next(), other.next()) {
                (None, None) => return Ordering::Equal,
                // Equal rows of one batch are one row, which need not be read.
                (Some(own), Some(other)) if ptr::eq(own, other) => Ordering::Equal,
                (Some(own), Some(other)) => {
                    let bits = |value: &f32| value.to_bits();
                    own.iter().map(bits).cmp(other.iter().map(bits))
                }
                (own, other) => return own.is_some().cmp(&other.is_some()),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
    }

    /// The values of all nodes, as bits.
    pub(super) fn bits(&self) -> impl Iterator<Item = u64> + '_ {
        let rows = self
            .batch()
            .into_iter()
            .flat_map(|(batch, config)| batch.node_rows(config));
        rows.flatten().map(|&value| f64::from(value).to_bits())
    }

    /// Bytes of its batch; 0 if another one has the same batch.
    pub(super) fn batch_bytes(&self, other: &Self) -> usize {
        let same =
            iter::zip(&self.0, &other.0).any(|((own, _), (other, _))| Arc::ptr_eq(own, other));
        match self.batch() {
            Some((batch, _)) if !same => batch.bytes(),
            _ => 0,
        }
    }
}

impl PartialEq for NodeColumns {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

#[cfg(test)]
impl Point {
    /// A layout, by the orders of its tensors.
    pub(super) fn of_orders(score: f64, orders: &[u32]) -> Self {
        Self {
            score,
            orders: orders.into(),
            ..Self::default()
        }
    }

    /// A tile, by the logarithms of its bounds.
    pub(super) fn of_bounds(bounds: &[f64]) -> Self {
        Self {
            bounds: bounds.into(),
            ..Self::default()
        }
    }

    /// A configuration of a feature set, by the columns of its only node.
    #[expect(clippy::cast_possible_truncation, reason = "tests have small numbers")]
    pub(super) fn of_columns(values: &[f64]) -> Self {
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let limits = hlorank_graph::Limits::default();
        let batch = NodeFeatureBatch::from_values([1, values.len()], &values, &limits).unwrap();
        Self {
            columns: NodeColumns::new(Arc::new(Configurations::FeatureSet(batch)), 0),
            ..Self::default()
        }
    }
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
        let point = Point::of_bounds(&bounds);
        assert_eq!(point.volumes().collect::<Vec<_>>(), [3.0, 24.0, 0.0]);
    }

    #[test]
    fn columns_of_several_nodes_are_aggregated() {
        let limits = Limits::default();
        let columns = |nodes: usize, values: &[f32]| {
            let batch = NodeFeatureBatch::from_values([nodes, 2], values, &limits).unwrap();
            NodeColumns::new(Arc::new(Configurations::FeatureSet(batch)), 0)
        };
        let values = |columns: &NodeColumns| {
            let places = 0..columns.len();
            places.map(|place| columns.value(place)).collect::<Vec<_>>()
        };
        assert_eq!(values(&columns(1, &[3.0, 4.0])), [3.0, 4.0]);
        let several = columns(2, &[3.0, 4.0, 5.0, 8.0]);
        assert_eq!(values(&several), [4.0, 3.0, 5.0, 6.0, 4.0, 8.0]);
        let exchanged = columns(2, &[5.0, 8.0, 3.0, 4.0]);
        assert_eq!(values(&exchanged), values(&several));
        assert_ne!(exchanged, several);
        assert!(!exchanged.bits().eq(several.bits()));
        assert_eq!(several, columns(2, &[3.0, 4.0, 5.0, 8.0]));
    }
}
