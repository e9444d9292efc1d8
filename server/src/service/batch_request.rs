//! Reads the batch of a request, or of a message of a stream.

use bytes::Bytes;
use hlorank_graph::EncodedBatch;

use super::ServiceError;
use crate::session::Sessions;

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs, \
                            packed_tile_configs, fusion_configs, packed_fusion_configs, delta_fusion_configs or \
                            node_feature_configs";

/// Returns the configurations of a batch, which are still encoded.
pub(super) async fn read_batch(
    sessions: &Sessions,
    batch: Option<Bytes>,
) -> Result<EncodedBatch, ServiceError> {
    present(sessions.batch(batch.unwrap_or_default()).await?)
}

/// Requires that a batch has configurations.
pub(super) fn present(batch: Option<EncodedBatch>) -> Result<EncodedBatch, ServiceError> {
    batch.ok_or(ServiceError::Missing {
        field: "configs",
        hint: CONFIGS_HINT,
    })
}
