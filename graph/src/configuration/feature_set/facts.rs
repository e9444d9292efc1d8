//! Columns of a feature set behind the interface of configuration kinds.

use hlorank_proto::v1::{self, config_batch::Configs};

use super::{NodeFeatureBatch, describe::describe, rows::NoRows};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph,
    configuration::{
        Batch, ConfigInput, ConfigValues, Configurations, Distinct, Element, FeatureRows, Kind,
        RowFinder, Scope, Task,
        checks::{check_count, check_size},
    },
};

pub(in crate::configuration) const KIND: Kind = Kind {
    name: "feature-set",
    wire: v1::Task::FeatureSet,
    scope: Scope::EveryNode,
    element: Element::Float32,
    width: 0,
    array: "config_features",
    feature_rows: |slots, limits| {
        Box::new(NodeFeatureRows {
            nodes: slots,
            values: Vec::new(),
            columns: 0,
            limits,
        })
    },
};

impl Batch for NodeFeatureBatch {
    fn task(&self) -> Task {
        Task::FeatureSet
    }

    fn count(&self) -> usize {
        self.len()
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
        let (entries, rows) = (self.len() * self.nodes(), self.rows().len());
        Configs::NodeFeatureConfigs(if rows + entries < entries * self.columns() {
            self.to_table()
        } else {
            self.to_dense()
        })
    }

    fn describe(&self, config: usize, _: &[u32]) -> String {
        describe(self, config)
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(NoRows(*self))
    }
}

/// Reads configurations from an npz file: `[nodes, columns]` values each.
struct NodeFeatureRows {
    nodes: usize,
    columns: usize,
    values: Vec<f32>,
    limits: Limits,
}

impl FeatureRows for NodeFeatureRows {
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.columns = row.len() / self.nodes.max(1);
        check_size(
            self.values.len() / row.len().max(1) + 1,
            row.len(),
            &self.limits,
        )?;
        self.values.extend_from_slice(row);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Configurations, ConfigurationError> {
        if self.values.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        let shape = [self.nodes, self.columns];
        NodeFeatureBatch::from_values(shape, &self.values, &self.limits)
            .map(Configurations::FeatureSet)
    }
}
