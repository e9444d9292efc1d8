//! Reads the configurations of a request.

use hlorank_graph::{
    ConfigurationError, Configurations, LayoutBatch, Limits, SegmentedGraph, Task, TileBatch,
};
use hlorank_proto::v1::{ConfigBatch, config_batch::Configs};
use prost::Message as _;

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

/// The task of a batch.
pub(super) fn batch_task(configs: &Configs) -> Task {
    match configs {
        Configs::TileConfigs(_) | Configs::PackedTileConfigs(_) => Task::Tile,
        _ => Task::Layout,
    }
}

/// How many candidates a batch says that it has.
pub(super) fn count(configs: &Configs) -> usize {
    match configs {
        Configs::LayoutConfigs(message) => message.configs.len(),
        Configs::PackedLayoutConfigs(message) => message.config_count as usize,
        Configs::DeltaLayoutConfigs(message) => message.change_counts.len(),
        Configs::TileConfigs(message) => message.configs.len(),
        Configs::PackedTileConfigs(message) => message.config_count as usize,
    }
}

/// Whether so many candidates are a small call.
pub(super) fn class_of(configs: usize) -> Class {
    if configs > INTERACTIVE_CONFIGS { Class::Bulk } else { Class::Interactive }
}

/// Refuses a batch of more candidates than there may be, before it waits for a worker: messages that say nothing take
/// much more memory than bytes.
pub(super) fn check_count(configs: &Configs, limits: &Limits) -> Result<(), ServiceError> {
    match count(configs) {
        found if found > limits.configs => Err(ServiceError::Configuration {
            field: field(configs),
            source: ConfigurationError::TooMany { found, limit: limits.configs },
        }),
        _ => Ok(()),
    }
}

/// Bytes that a batch takes beside its message and its embeddings, at most: decoded, read, planned, scored and ranked.
pub(super) fn batch_bytes(configs: &Configs, graph: &SegmentedGraph, limits: &Limits) -> usize {
    // Numbers of one to two bytes become vectors of four and more.
    const DECODED: usize = 8;
    // Where it stands, which of the distinct ones it is, its score and its place in the ranking.
    const CONFIG_BYTES: usize = 48;
    let count = count(configs);
    let layouts = (count * graph.slots()).min(limits.config_entries) * size_of::<u16>();
    let read = match configs {
        Configs::LayoutConfigs(message) => message.encoded_len() * DECODED + layouts,
        Configs::PackedLayoutConfigs(_) | Configs::DeltaLayoutConfigs(_) => layouts,
        Configs::TileConfigs(message) => message.encoded_len() * (DECODED + 1),
        Configs::PackedTileConfigs(message) => message.encoded_len(),
    };
    read + count * (graph.occurrences.len() * size_of::<u32>() + CONFIG_BYTES)
}

/// Reads a batch against its graph.
pub(super) fn read_configs(
    configs: &Configs,
    graph: &SegmentedGraph,
    limits: &Limits,
) -> Result<Configurations, ServiceError> {
    let field = field(configs);
    let refused = |source| ServiceError::Configuration { field, source };
    let batch = batch_task(configs);
    if batch != graph.task {
        return Err(refused(ConfigurationError::WrongTask { batch, graph: graph.task }));
    }
    if graph.task == Task::Layout && graph.slots() == 0 {
        return Err(refused(ConfigurationError::NothingToConfigure));
    }
    let configurations = match configs {
        Configs::LayoutConfigs(message) => {
            LayoutBatch::from_readable(message, &graph.configurable, limits).map(Configurations::Layout)
        }
        Configs::PackedLayoutConfigs(message) => {
            LayoutBatch::from_packed(message, graph.slots(), limits).map(Configurations::Layout)
        }
        Configs::DeltaLayoutConfigs(message) => {
            LayoutBatch::from_delta(message, graph.slots(), limits).map(Configurations::Layout)
        }
        Configs::TileConfigs(message) => TileBatch::from_readable(message, limits).map(Configurations::Tile),
        Configs::PackedTileConfigs(message) => {
            TileBatch::from_packed(message, limits).map(Configurations::Tile)
        }
    };
    configurations.map_err(refused)
}

fn field(configs: &Configs) -> &'static str {
    match configs {
        Configs::LayoutConfigs(_) => "layout_configs",
        Configs::PackedLayoutConfigs(_) => "packed_layout_configs",
        Configs::DeltaLayoutConfigs(_) => "delta_layout_configs",
        Configs::TileConfigs(_) => "tile_configs",
        Configs::PackedTileConfigs(_) => "packed_tile_configs",
    }
}
