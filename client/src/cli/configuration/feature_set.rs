//! Columns of a feature set: JSON and random draws.

use fastrand::Rng;
use hlorank_graph::{ConfigurationError, Configurations, NodeFeatureBatch};
use serde::{Deserialize, Serialize};

use crate::cli::input::FILE_LIMITS;

/// One configuration as JSON: the columns of every node.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeFeatureForm {
    node_features: Vec<Vec<f32>>,
}

/// Converts configurations of a graph of `nodes` nodes from JSON. All nodes have as many columns as the first.
pub(super) fn from_forms(
    forms: &[NodeFeatureForm],
    nodes: usize,
) -> Result<Configurations, ConfigurationError> {
    let first_row = forms.first().and_then(|form| form.node_features.first());
    let columns = first_row.map_or(0, Vec::len);
    // Values are joined without borders of rows, so a row of another length would shift the rest.
    for (config, form) in forms.iter().enumerate() {
        form.check(config, [nodes, columns])?;
    }
    let rows = forms.iter().flat_map(|form| &form.node_features);
    let values: Vec<f32> = rows.flatten().copied().collect();
    build([nodes, columns], &values)
}

fn check_count(
    what: impl FnOnce() -> String,
    found: usize,
    expected: usize,
) -> Result<(), ConfigurationError> {
    if found == expected {
        return Ok(());
    }
    Err(ConfigurationError::WrongCount {
        what: what(),
        found,
        expected,
    })
}

/// Returns random configurations, each node of which is taken from any of these configurations.
pub(super) fn recombine(
    own: &NodeFeatureBatch,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    let mut values = Vec::new();
    for _ in 0..count {
        for node in 0..own.nodes() {
            // A row is taken as a whole, because its columns may be possible only together.
            let row = own.numbers(random.usize(..own.len()))[node] as usize;
            values.extend_from_slice(&own.rows()[row * own.columns()..][..own.columns()]);
        }
    }
    build([own.nodes(), own.columns()], &values)
}

fn build(shape: [usize; 2], values: &[f32]) -> Result<Configurations, ConfigurationError> {
    let batch = NodeFeatureBatch::from_values(shape, values, &FILE_LIMITS)?;
    Ok(Configurations::FeatureSet(batch))
}

impl NodeFeatureForm {
    /// Checks the number of nodes, and that of the columns of each.
    fn check(&self, config: usize, [nodes, columns]: [usize; 2]) -> Result<(), ConfigurationError> {
        let what = || format!("configuration {config} (in nodes)");
        check_count(what, self.node_features.len(), nodes)?;
        for (node, row) in self.node_features.iter().enumerate() {
            let what = || format!("configuration {config}, node {node}");
            check_count(what, row.len(), columns)?;
        }
        Ok(())
    }

    pub(super) fn of(batch: &NodeFeatureBatch, config: usize) -> Self {
        let values: Vec<f32> = batch.values(config).collect();
        let rows = values.chunks(batch.columns());
        Self {
            node_features: rows.map(<[f32]>::to_vec).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Configurations, ConfigurationError> {
        from_forms(&serde_json::from_str::<Vec<_>>(text).unwrap(), 2)
    }

    fn batch(read: Configurations) -> NodeFeatureBatch {
        let Configurations::FeatureSet(batch) = read else {
            unreachable!("columns of columns")
        };
        batch
    }

    #[test]
    fn columns_are_written_as_they_were_read() {
        let text = r#"[{"node_features":[[1.5,2.0],[3.0,4.0]]}]"#;
        let form = NodeFeatureForm::of(&batch(read(text).unwrap()), 0);
        assert_eq!(serde_json::to_string(&[form]).unwrap(), text);
        let ragged = read(r#"[{"node_features":[[1],[3,4]]}]"#)
            .unwrap_err()
            .to_string();
        assert_eq!(ragged, "configuration 0, node 1 has 2 entries, expected 1");
        let short = read(r#"[{"node_features":[[1]]}]"#)
            .unwrap_err()
            .to_string();
        assert!(short.contains("configuration 0 (in nodes)"), "{short}");
    }

    #[test]
    fn a_node_is_taken_from_any_configuration() {
        let own =
            batch(read(r#"[{"node_features":[[1],[2]]},{"node_features":[[3],[4]]}]"#).unwrap());
        let drawn = batch(recombine(&own, 50, &mut Rng::with_seed(0)).unwrap());
        assert!((0..50).all(|config| {
            let values: Vec<f32> = drawn.values(config).collect();
            [1.0, 3.0].contains(&values[0]) && [2.0, 4.0].contains(&values[1])
        }));
        assert!((0..50).any(|config| drawn.values(config).eq([1.0, 4.0])));
    }
}
