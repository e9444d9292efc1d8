//! Reads and writes the forms of a batch of node features, which are equal in meaning.

use hlorank_proto::v1::{NodeFeatureConfigs, ParameterConfig};
use prost::Message as _;

use super::batch::NodeFeatureBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::checks::{EncodedSize, check_count, check_size, to_u32},
    wire::{WireError, count_messages, last_bytes, last_number, messages, uint32},
};

/// Numbers of the fields.
const CONFIG_COUNT: u32 = 1;
const FEATURES: u32 = 2;
const ROWS: u32 = 3;
const ROW_INDICES: u32 = 4;
const COLUMN_COUNT: u32 = 5;

/// Bytes of a node of a configuration: the number of its row and, at most, an entry in the table of distinct rows.
const NODE_BYTES: usize = size_of::<u32>() + 16;

/// The numbers of rows, and the distinct rows while they grow and once they are complete. A message of another length than its
/// sizes ask for is refused before memory is taken.
pub(in crate::configuration) fn read_bytes(size: &EncodedSize, limits: &Limits) -> usize {
    let nodes = size.configs.min(limits.configs).saturating_mul(size.slots);
    3 * size.bytes + NODE_BYTES * nodes.min(size.bytes / size_of::<f32>())
}

/// Returns the number of columns of a node that a message of either form claims to have.
pub(in crate::configuration) fn columns(message: &[u8]) -> usize {
    // The first field of one form is a number, and that of the other holds the first configuration.
    match messages(message, 1).next() {
        Some(Ok(first)) => values(first).map_or(0, |values| values.len()),
        _ => last_number(message, COLUMN_COUNT).map_or(0, |count| uint32(count) as usize),
    }
}

pub(in crate::configuration) fn read(
    message: &[u8],
    nodes: &[u32],
    limits: &Limits,
) -> Result<NodeFeatureBatch, ConfigurationError> {
    let nodes = nodes.len();
    let configs = uint32(last_number(message, CONFIG_COUNT)?) as usize;
    let columns = uint32(last_number(message, COLUMN_COUNT)?) as usize;
    let features = last_bytes(message, FEATURES)?;
    let rows = last_bytes(message, ROWS)?;
    let indices = last_bytes(message, ROW_INDICES)?;
    // A message without any values is read in the dense form, which finds what is missing.
    match (features.is_empty(), rows.is_empty() && indices.is_empty()) {
        (false, false) => Err(ConfigurationError::DenseAndTable),
        (_, true) => NodeFeatureBatch::from_bytes(configs, [nodes, columns], features, limits),
        (true, false) => {
            NodeFeatureBatch::from_table(configs, [nodes, columns], (rows, indices), limits)
        }
    }
}

/// Reads the values of a configuration of the only node of a graph.
fn values(config: &[u8]) -> Result<Vec<f32>, WireError> {
    Ok(ParameterConfig::decode(config)?.values)
}

pub(in crate::configuration) fn read_parameters(
    message: &[u8],
    nodes: &[u32],
    limits: &Limits,
) -> Result<NodeFeatureBatch, ConfigurationError> {
    check_count("a parameter configuration (in nodes)", 1, nodes.len())?;
    let configs = count_messages(message, 1)?;
    let columns = columns(message);
    check_size(configs, columns, limits)?;
    // One configuration is decoded at a time, because all of them decoded would take several times
    // the message.
    let mut bytes = Vec::new();
    for (number, config) in messages(message, 1).enumerate() {
        let values = values(config?)?;
        if values.len() != columns {
            return Err(ConfigurationError::ParameterCount {
                config: number,
                found: values.len(),
                expected: columns,
            });
        }
        bytes.extend(values.into_iter().flat_map(f32::to_le_bytes));
    }
    NodeFeatureBatch::from_bytes(configs, [1, columns], &bytes, limits)
}

impl NodeFeatureBatch {
    /// Writes the dense form.
    pub fn to_dense(&self) -> NodeFeatureConfigs {
        let values = (0..self.len()).flat_map(|config| self.values(config));
        let features: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        NodeFeatureConfigs {
            features: features.into(),
            ..self.sizes()
        }
    }

    /// Writes the table of distinct rows.
    pub fn to_table(&self) -> NodeFeatureConfigs {
        let rows: Vec<u8> = self
            .rows()
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let numbers = (0..self.len()).flat_map(|config| self.numbers(config));
        let indices: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        NodeFeatureConfigs {
            rows: rows.into(),
            row_indices: indices.into(),
            ..self.sizes()
        }
    }

    fn sizes(&self) -> NodeFeatureConfigs {
        NodeFeatureConfigs {
            config_count: to_u32(self.len()),
            column_count: to_u32(self.columns()),
            ..NodeFeatureConfigs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use hlorank_proto::v1::ParameterConfigs;

    use super::*;

    fn parameters(configs: &[&[f32]], nodes: u32) -> Result<NodeFeatureBatch, ConfigurationError> {
        let nodes: Vec<u32> = (0..nodes).collect();
        let config = |values: &&[f32]| ParameterConfig {
            values: values.to_vec(),
        };
        let message = ParameterConfigs {
            configs: configs.iter().map(config).collect(),
        };
        read_parameters(&message.encode_to_vec(), &nodes, &Limits::default())
    }

    #[test]
    fn parameters_are_values_of_the_only_node() {
        let expected =
            NodeFeatureBatch::from_values([1, 2], &[1.0, 0.0, 3.0, 4.0], &Limits::default());
        assert_eq!(parameters(&[&[1.0, -0.0], &[3.0, 4.0]], 1), expected);
        assert!(parameters(&[&[1.0]], 2).is_err(), "several nodes");
        assert_eq!(parameters(&[], 1), Err(ConfigurationError::Empty));
    }
}
