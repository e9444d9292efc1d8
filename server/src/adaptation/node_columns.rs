use std::{cmp::Ordering, iter, ptr, sync::Arc};

use hlorank_graph::{Configurations, NodeFeatureBatch};

use super::linear_algebra::scalar;

/// The columns of a configuration of a feature set: those of the only node, or of several nodes the mean, least and largest value
/// of each.
///
/// They stay in the batch, which has each distinct row once, and are computed when they are asked for: a small batch of equal rows
/// stands for many columns of many configurations.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeColumns(Option<(Arc<Configurations>, usize)>);

/// Number of columns that become of a column of several nodes.
const AGGREGATES: usize = 3;

impl NodeColumns {
    /// The columns of a configuration; none if it is not of a feature set.
    pub(super) fn new(configurations: Arc<Configurations>, config: usize) -> Self {
        Self(Some((configurations, config)))
    }

    /// The columns of a configuration of one node.
    #[cfg(test)]
    #[expect(clippy::cast_possible_truncation, reason = "tests have small numbers")]
    pub(crate) fn of_values(values: &[f64]) -> Self {
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let limits = hlorank_graph::Limits::default();
        let batch = NodeFeatureBatch::from_values([1, values.len()], &values, &limits).unwrap();
        Self::new(Arc::new(Configurations::FeatureSet(batch)), 0)
    }

    fn batch(&self) -> Option<(&NodeFeatureBatch, usize)> {
        match self.0.as_ref() {
            Some((configurations, config)) => match &**configurations {
                Configurations::FeatureSet(batch) => Some((batch, *config)),
                _ => None,
            },
            None => None,
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
mod tests {
    use hlorank_graph::Limits;

    use super::*;

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
