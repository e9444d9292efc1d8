//! Reads the batch of a request, or of a message of a stream.

use hlorank_graph::form;
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};

use super::ServiceError;
use crate::session::{Bounds, SessionError, check_count};

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs or \
                            packed_tile_configs";

/// Returns the configurations of a batch.
pub(super) fn present(batch: Option<ConfigBatch>) -> Result<Configs, ServiceError> {
    let configs = batch.and_then(|batch| batch.configs);
    configs.ok_or(ServiceError::Missing { field: "configs", hint: CONFIGS_HINT })
}

/// Refuses a batch of more configurations than the limit.
pub(super) fn check_size(configs: &Configs, bounds: &Bounds) -> Result<(), SessionError> {
    check_count(form(configs), bounds.limits.configs)
}
