//! Reads the configurations of a request.

use hlorank_graph::{ConfigurationError, Configurations, Limits, SegmentedGraph, form, read_form};
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};

use super::ServiceError;
use crate::compute::Class;

const CONFIGS_HINT: &str = "set layout_configs, packed_layout_configs, delta_layout_configs, tile_configs or \
                            packed_tile_configs";

/// Candidates of a small call at most: a step of a search has some hundred.
const INTERACTIVE_CONFIGS: usize = 256;

/// Returns the configurations of a request, or of a message of a stream.
pub(super) fn present(batch: Option<ConfigBatch>) -> Result<Configs, ServiceError> {
    let configs = batch.and_then(|batch| batch.configs);
    configs.ok_or(ServiceError::Missing { field: "configs", hint: CONFIGS_HINT })
}

/// Whether so many candidates are a small call.
pub(super) fn class_of(configs: usize) -> Class {
    if configs > INTERACTIVE_CONFIGS { Class::Bulk } else { Class::Interactive }
}

/// Refuses a batch of more configurations than the limit before it waits for a worker. Configurations that say nothing
/// take much more memory than they have bytes on the wire.
pub(super) fn check_count(configs: &Configs, limits: &Limits) -> Result<(), ServiceError> {
    let form = form(configs);
    match form.count() {
        found if found > limits.configs => Err(ServiceError::Configuration {
            field: form.field(),
            source: ConfigurationError::TooMany { found, limit: limits.configs },
        }),
        _ => Ok(()),
    }
}

/// Maximum number of bytes that a batch takes beside its message and its embeddings.
pub(super) fn batch_bytes(configs: &Configs, graph: &SegmentedGraph, limits: &Limits) -> usize {
    // Where a configuration stands, which of the distinct ones it is, its score and its place in the ranking.
    const CONFIG_BYTES: usize = 48;
    let form = form(configs);
    let read = form.read_bytes(graph.slots(), limits);
    read + form.count() * (graph.occurrences.len() * size_of::<u32>() + CONFIG_BYTES)
}

/// Reads a batch against its graph.
pub(super) fn read_configs(
    configs: &Configs,
    graph: &SegmentedGraph,
    limits: &Limits,
) -> Result<Configurations, ServiceError> {
    let form = form(configs);
    read_form(form, graph.task, &graph.configurable, limits)
        .map_err(|source| ServiceError::Configuration { field: form.field(), source })
}
