//! Columns of a feature set behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;
use prost::encoding::encode_varint;

use super::batch::NodeFeatureBatch;
use crate::{
    ConfigurationError, Graph, Limits, Segment, SegmentedGraph, Task,
    configuration::{
        batch::{Batch, FeatureRows, ReadBatch, malformed, number},
        checks::{check_count, check_size},
        distinct::Distinct,
        rows::{
            ConfigInput, ConfigValues, FoundRows, LocalConfigurations, Row, RowFinder, TooManyRows,
        },
    },
};

/// Maximum number of letters for the values of a node; the rest is left out.
const VALUE_LETTERS: usize = 48;

impl Batch for NodeFeatureBatch {
    fn task(&self) -> Task {
        Task::FeatureSet
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn columns(&self) -> Option<usize> {
        Some(self.columns())
    }

    fn check(&self, graph: &Graph) -> Result<(), ConfigurationError> {
        check_count("a configuration (in nodes)", self.nodes(), graph.len())
    }

    fn distinct(&self) -> Distinct {
        Distinct::new(self.len(), |config| self.numbers(config))
    }

    fn input(&self, configs: &[usize]) -> ConfigInput {
        let values = configs
            .iter()
            .flat_map(|&config| self.values(config))
            .collect();
        let shape = vec![configs.len(), self.nodes(), self.columns()];
        ConfigInput {
            shape,
            values: ConfigValues::Float32(values),
        }
    }

    fn feature_row(&self, config: usize) -> Vec<f32> {
        self.values(config).collect()
    }

    /// The table if it is smaller, as it is if rows are often equal, else the dense form.
    fn to_smallest_form(&self) -> Configs {
        // Both sides count numbers of four bytes.
        let entries = self.len() * self.nodes();
        let rows = self.rows().len();
        Configs::NodeFeatureConfigs(if rows + entries < entries * self.columns() {
            self.to_table()
        } else {
            self.to_dense()
        })
    }

    fn canonical(&self, config: usize) -> Vec<u8> {
        // The numbers of nodes and columns as varints, and the values.
        let mut bytes = Vec::new();
        encode_varint(self.nodes() as u64, &mut bytes);
        encode_varint(self.columns() as u64, &mut bytes);
        bytes.extend(self.values(config).flat_map(f32::to_le_bytes));
        bytes
    }

    /// The values of the first node.
    fn describe(&self, config: usize, _: &[u32]) -> String {
        let mut text = format!("{} nodes; node 0: ", self.nodes());
        let start = text.len();
        for (column, value) in self.values(config).take(self.columns()).enumerate() {
            if text.len() - start > VALUE_LETTERS {
                text.push_str(" …");
                break;
            }
            if column > 0 {
                text.push(' ');
            }
            text.push_str(&value.to_string());
        }
        text
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(NoRows(*self))
    }
}

impl ReadBatch for NodeFeatureBatch {
    type Rows = NodeFeatureRows;

    fn feature_rows(slots: usize, limits: Limits) -> NodeFeatureRows {
        NodeFeatureRows {
            nodes: slots,
            columns: 0,
            values: Vec::new(),
            limits,
        }
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let mut shape = None;
        let mut count = 0;
        let mut features = Vec::new();
        for mut config in configs {
            let found = [number(&mut config)?, number(&mut config)?];
            if *shape.get_or_insert(found) != found {
                let differ = "configurations have different numbers of nodes or columns";
                return Err(malformed(differ));
            }
            count += 1;
            features.extend_from_slice(config);
        }
        let shape = shape
            .unwrap_or_default()
            .map(|size| usize::try_from(size).unwrap_or(usize::MAX));
        Self::from_bytes(count, shape, &features, limits)
    }
}

/// Reads configurations from an npz file: `[nodes, columns]` values each.
pub(in crate::configuration) struct NodeFeatureRows {
    nodes: usize,
    columns: usize,
    values: Vec<f32>,
    limits: Limits,
}

impl FeatureRows<NodeFeatureBatch> for NodeFeatureRows {
    fn push_row(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.columns = row.len() / self.nodes.max(1);
        // All rows of a file have the same length, so the number of rows follows from the values.
        let configs = self.values.len() / row.len().max(1) + 1;
        check_size(configs, row.len(), &self.limits)?;
        self.values.extend_from_slice(row);
        Ok(())
    }

    fn finish(self) -> Result<NodeFeatureBatch, ConfigurationError> {
        let shape = [self.nodes, self.columns];
        NodeFeatureBatch::from_values(shape, &self.values, &self.limits)
    }
}

/// Finds no rows of segments: only whole-graph models score graphs of feature sets, which are not cut.
pub(super) struct NoRows(NodeFeatureBatch);

impl RowFinder for NoRows {
    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        found
            .add_config(graph, |config| self.0.numbers(config))
            .map(|_| ())
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        self
    }
}

impl LocalConfigurations for NoRows {
    fn hash(&self, _: Row, _: &mut blake3::Hasher) {}

    fn write(&self, _: Row, _: &Segment, _: usize, _: &mut ConfigValues) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_is_shown_and_many_columns_are_cut_short() {
        let text = |columns: u16| {
            let values: Vec<f32> = (0..2 * columns).map(f32::from).collect();
            let shape = [2, columns.into()];
            NodeFeatureBatch::from_values(shape, &values, &Limits::default())
                .unwrap()
                .describe(0, &[])
        };
        assert_eq!(text(3), "2 nodes; node 0: 0 1 2");
        assert!(
            text(1000).ends_with(" …") && text(1000).len() < 90,
            "{}",
            text(1000)
        );
    }

    #[test]
    fn the_table_is_sent_if_it_is_smaller() {
        let form = |values: &[f32]| {
            let batch = NodeFeatureBatch::from_values([2, 3], values, &Limits::default()).unwrap();
            let Configs::NodeFeatureConfigs(message) = batch.to_smallest_form() else {
                panic!("another form")
            };
            message
        };
        let different: Vec<f32> = (0..12_u8).map(f32::from).collect();
        assert!(form(&different).rows.is_empty());
        assert!(form(&[1.0; 12]).features.is_empty());
    }
}
