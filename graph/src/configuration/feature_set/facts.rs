//! Columns of a feature set behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;

use super::{
    NodeFeatureBatch, canonical,
    describe::describe,
    encoded::{NODE_FEATURES, PARAMETERS},
    rows::NoRows,
};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph, Task,
    configuration::{
        Batch, ConfigInput, ConfigValues, Distinct, Form, RowFinder,
        checks::{check_count, check_size},
        encoded_form::EncodedForm,
        feature_rows::FeatureRows,
        read_batch::ReadBatch,
    },
};

impl Batch for NodeFeatureBatch {
    fn task(&self) -> Task {
        Task::FeatureSet
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> Option<usize> {
        Some(self.columns())
    }

    fn check(&self, graph: &Graph) -> Result<(), ConfigurationError> {
        check_count("a configuration (in nodes)", self.nodes(), graph.len())
    }

    fn distinct(&self) -> Distinct {
        Distinct::of(self.len(), |config| self.numbers(config))
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

    fn to_forms(&self, _: &[u32]) -> Vec<Configs> {
        [self.to_dense(), self.to_table()]
            .map(Configs::NodeFeatureConfigs)
            .into()
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
        canonical::write(self, config)
    }

    fn describe(&self, config: usize, _: &[u32]) -> String {
        describe(self, config)
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(NoRows(*self))
    }
}

impl ReadBatch for NodeFeatureBatch {
    const FORMS: &'static [EncodedForm<Self>] = &[NODE_FEATURES, PARAMETERS];

    fn form(configs: &Configs) -> Option<&dyn Form> {
        match configs {
            Configs::NodeFeatureConfigs(message) => Some(message),
            Configs::ParameterConfigs(message) => Some(message),
            _ => None,
        }
    }

    fn feature_rows(slots: usize, limits: Limits) -> Box<dyn FeatureRows<Self>> {
        Box::new(NodeFeatureRows {
            nodes: slots,
            columns: 0,
            values: Vec::new(),
            limits,
        })
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        canonical::read(configs, limits)
    }
}

/// Reads configurations from an npz file: `[nodes, columns]` values each.
struct NodeFeatureRows {
    nodes: usize,
    columns: usize,
    values: Vec<f32>,
    limits: Limits,
}

impl FeatureRows<NodeFeatureBatch> for NodeFeatureRows {
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.columns = row.len() / self.nodes.max(1);
        // All rows of a file have the same length, so the number of rows follows from the values.
        let configs = self.values.len() / row.len().max(1) + 1;
        check_size(configs, row.len(), &self.limits)?;
        self.values.extend_from_slice(row);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<NodeFeatureBatch, ConfigurationError> {
        if self.values.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        let shape = [self.nodes, self.columns];
        NodeFeatureBatch::from_values(shape, &self.values, &self.limits)
    }
}
