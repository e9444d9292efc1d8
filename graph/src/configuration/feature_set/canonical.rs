//! Columns of a feature set as bytes: the numbers of nodes and columns as varints, and `[nodes, columns]` f32.

use prost::encoding::encode_varint;

use super::NodeFeatureBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::canonical::{malformed, number},
};

pub(super) fn write(batch: &NodeFeatureBatch, config: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(batch.nodes() as u64, &mut bytes);
    encode_varint(batch.columns() as u64, &mut bytes);
    bytes.extend(batch.values(config).flat_map(f32::to_le_bytes));
    bytes
}

pub(super) fn read<'a>(
    configs: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
) -> Result<NodeFeatureBatch, ConfigurationError> {
    let mut shape = None;
    let mut count = 0;
    let mut features = Vec::new();
    for mut config in configs {
        let found = [number(&mut config)?, number(&mut config)?];
        if *shape.get_or_insert(found) != found {
            return Err(malformed(
                "configurations have different numbers of nodes or columns",
            ));
        }
        count += 1;
        features.extend_from_slice(config);
    }
    let shape = shape
        .unwrap_or_default()
        .map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    NodeFeatureBatch::from_bytes(count, shape, &features, limits)
}
