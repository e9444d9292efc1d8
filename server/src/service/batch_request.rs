//! Reads the batch of a request, or of a message of a stream.

use bytes::Bytes;
use hlorank_graph::EncodedBatch;

use super::{CostModel, ServiceError};

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs, \
                            packed_tile_configs, fusion_configs, packed_fusion_configs, delta_fusion_configs or \
                            node_feature_configs";

impl CostModel {
    /// Returns the configurations of a batch, which are still encoded.
    pub(super) async fn batch(&self, batch: Option<Bytes>) -> Result<EncodedBatch, ServiceError> {
        let batch = self
            .decoder
            .batch("batch", batch.unwrap_or_default())
            .await?;
        present(batch)
    }
}

/// Requires that a batch has configurations.
pub(super) fn present(batch: Option<EncodedBatch>) -> Result<EncodedBatch, ServiceError> {
    batch.ok_or(ServiceError::Missing {
        field: "configs",
        hint: CONFIGS_HINT,
    })
}
