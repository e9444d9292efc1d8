//! Reads batches the simple way: prost decodes the whole message, and a batch is built of its parts. The server's reader
//! must accept the same messages, and give the same batches.

use hlorank_graph::{
    Configurations, FusionBatch, LayoutBatch, LayoutBatchBuilder, LayoutEntry, Limits,
    NodeFeatureBatch, TileBatch, TileConfiguration,
};
use hlorank_proto::v1::{
    DeltaLayoutConfigs, FusionConfigs, LayoutConfig, LayoutConfigs, LayoutTable,
    NodeFeatureConfigs, NodeLayout, PackedLayoutConfigs, PackedTileConfigs, ParameterConfigs,
    TileConfig, TileConfigs, config_batch::Configs,
};

/// Reads a decoded batch for a graph of `slots` configurable nodes, which are the nodes from 0. Returns `None` if the
/// batch has to be refused.
pub(crate) fn read(configs: &Configs, slots: usize, limits: &Limits) -> Option<Configurations> {
    match configs {
        Configs::TileConfigs(message) => tiles(message, limits).map(Configurations::Tile),
        Configs::PackedTileConfigs(message) => {
            packed_tiles(message, limits).map(Configurations::Tile)
        }
        _ if slots == 0 => None,
        Configs::LayoutConfigs(message) => {
            layouts(message, slots, limits).map(Configurations::Layout)
        }
        Configs::PackedLayoutConfigs(message) => {
            packed_layouts(message, slots, limits).map(Configurations::Layout)
        }
        Configs::DeltaLayoutConfigs(message) => {
            changed_layouts(message, slots, limits).map(Configurations::Layout)
        }
        Configs::FusionConfigs(message) => {
            fusions(message, slots, limits).map(Configurations::Fusion)
        }
        Configs::PackedFusionConfigs(message) => {
            let configs = message.config_count as usize;
            FusionBatch::new(configs, slots, message.fused.to_vec(), limits)
                .ok()
                .map(Configurations::Fusion)
        }
        Configs::NodeFeatureConfigs(message) => {
            node_features(message, slots, limits).map(Configurations::FeatureSet)
        }
        Configs::ParameterConfigs(message) => {
            parameters(message, slots, limits).map(Configurations::FeatureSet)
        }
    }
}

fn parameters(
    message: &ParameterConfigs,
    nodes: usize,
    limits: &Limits,
) -> Option<NodeFeatureBatch> {
    let columns = message.configs.first()?.values.len();
    let is_alike = message
        .configs
        .iter()
        .all(|config| config.values.len() == columns);
    let values: Vec<f32> = message
        .configs
        .iter()
        .flat_map(|config| config.values.iter().copied())
        .collect();
    let is_within =
        message.configs.len() <= limits.configs && values.len() <= limits.config_entries;
    if nodes != 1 || columns == 0 || !is_alike || !is_within {
        return None;
    }
    NodeFeatureBatch::from_values([1, columns], &values, limits).ok()
}

fn node_features(
    message: &NodeFeatureConfigs,
    nodes: usize,
    limits: &Limits,
) -> Option<NodeFeatureBatch> {
    let (configs, columns) = (message.config_count as usize, message.column_count as usize);
    let is_within = configs <= limits.configs
        && configs.saturating_mul(nodes).saturating_mul(columns) <= limits.config_entries;
    let floats = |bytes: &[u8]| -> Option<Vec<f32>> {
        let (quads, rest) = bytes.as_chunks::<4>();
        rest.is_empty()
            .then(|| quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect())
    };
    let has_table = !(message.rows.is_empty() && message.row_indices.is_empty());
    if configs == 0 || columns == 0 || !is_within || (has_table && !message.features.is_empty()) {
        return None;
    }
    let values = if has_table {
        let (rows, (quads, rest)) = (floats(&message.rows)?, message.row_indices.as_chunks::<4>());
        if !rest.is_empty() || quads.len() != configs * nodes || !rows.len().is_multiple_of(columns)
        {
            return None;
        }
        let row = |quad: &[u8; 4]| rows.chunks(columns).nth(u32::from_le_bytes(*quad) as usize);
        quads.iter().map(row).collect::<Option<Vec<_>>>()?.concat()
    } else {
        floats(&message.features)?
    };
    if values.len() != configs * nodes * columns {
        return None;
    }
    NodeFeatureBatch::from_values([nodes, columns], &values, limits).ok()
}

fn tiles(message: &TileConfigs, limits: &Limits) -> Option<TileBatch> {
    let mut batch = TileBatch::default();
    for tile in &message.configs {
        let tile = TileConfiguration {
            kernel_bounds: &tile.kernel_bounds,
            output_bounds: &tile.output_bounds,
            input_bounds: &tile.input_bounds,
        };
        batch.push(tile, limits).ok()?;
    }
    (!batch.is_empty()).then_some(batch)
}

fn packed_tiles(message: &PackedTileConfigs, limits: &Limits) -> Option<TileBatch> {
    let counts = [
        message.kernel_bound_count,
        message.output_bound_count,
        message.input_bound_count,
    ];
    let [kernel, output, input] = counts.map(|count| count as usize);
    let configs = message.config_count as usize;
    let fits = configs <= limits.configs && counts.iter().all(|count| *count <= 64);
    if !fits || message.bounds.len() != configs * (kernel + output + input) * 4 {
        return None;
    }
    let (quads, _) = message.bounds.as_chunks::<4>();
    let mut bounds = quads
        .iter()
        .map(|quad| i64::from(i32::from_le_bytes(*quad)));
    let mut list = |length| bounds.by_ref().take(length).collect::<Vec<i64>>();
    let configs = (0..configs).map(|_| TileConfig {
        kernel_bounds: list(kernel),
        output_bounds: list(output),
        input_bounds: list(input),
    });
    let configs = configs.collect();
    tiles(&TileConfigs { configs }, limits)
}

fn layouts(message: &LayoutConfigs, slots: usize, limits: &Limits) -> Option<LayoutBatch> {
    let mut batch = LayoutBatchBuilder::new(slots, *limits);
    for config in &message.configs {
        batch.push(&entries(config, slots)?).ok()?;
    }
    batch.build().ok()
}

fn entries(config: &LayoutConfig, slots: usize) -> Option<Vec<LayoutEntry>> {
    let mut entries = vec![None; slots];
    for NodeLayout { node, tensors } in &config.nodes {
        let tensors = tensors.iter().map(|tensor| &tensor.minor_to_major);
        let entry = LayoutEntry::from_tensors(tensors).ok()?;
        if entries.get_mut(*node as usize)?.replace(entry).is_some() {
            return None;
        }
    }
    Some(entries.into_iter().map(Option::unwrap_or_default).collect())
}

fn packed_layouts(
    message: &PackedLayoutConfigs,
    slots: usize,
    limits: &Limits,
) -> Option<LayoutBatch> {
    let tables = tables(&message.tables)?;
    let is_narrow = tables.iter().all(|table| table.len() <= 256);
    let width = if is_narrow { 1 } else { 2 };
    let configs = message.config_count as usize;
    if tables.len() != slots || message.indices.len() != configs.checked_mul(slots * width)? {
        return None;
    }
    let index = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |index, byte| index << 8 | u16::from(*byte))
    };
    LayoutBatch::new(
        configs,
        tables,
        message.indices.chunks(width).map(index).collect(),
        limits,
    )
    .ok()
}

fn tables(tables: &[LayoutTable]) -> Option<Vec<Vec<LayoutEntry>>> {
    let entry =
        |numbers: &[u32]| LayoutEntry::from_numbers(numbers.try_into().ok()?, String::new).ok();
    tables
        .iter()
        .map(|table| table.entries.chunks(3).map(entry).collect())
        .collect()
}

fn changed_layouts(
    message: &DeltaLayoutConfigs,
    slots: usize,
    limits: &Limits,
) -> Option<LayoutBatch> {
    let mut changes = message.change_slots.iter().zip(&message.change_entries);
    let total: u64 = message
        .change_counts
        .iter()
        .map(|count| u64::from(*count))
        .sum();
    let lists = [message.change_slots.len(), message.change_entries.len()];
    let is_too_large = message.change_counts.len() > limits.configs;
    if message.base.len() != slots || lists.iter().any(|list| *list as u64 != total) || is_too_large
    {
        return None;
    }
    let mut indices = Vec::new();
    for &count in &message.change_counts {
        let mut row: Vec<(u32, bool)> = message.base.iter().map(|&index| (index, false)).collect();
        for (&slot, &index) in changes.by_ref().take(count as usize) {
            let before = std::mem::replace(row.get_mut(slot as usize)?, (index, true));
            if before.1 {
                return None;
            }
        }
        indices.extend(row);
    }
    let indices = indices
        .into_iter()
        .map(|(index, _)| u16::try_from(index).ok())
        .collect::<Option<_>>()?;
    let tables = tables(&message.tables).filter(|tables| tables.len() == slots)?;
    // A base that every configuration changes must be in its table, too.
    let mut base = message.base.iter().zip(&tables);
    base.all(|(&index, table)| (index as usize) < table.len())
        .then_some(())?;
    LayoutBatch::new(message.change_counts.len(), tables, indices, limits).ok()
}

fn fusions(message: &FusionConfigs, slots: usize, limits: &Limits) -> Option<FusionBatch> {
    if message.configs.len() > limits.configs {
        return None;
    }
    let mut fused = Vec::new();
    for config in &message.configs {
        let mut bits = vec![false; slots];
        for &node in &config.fused_nodes {
            let before = std::mem::replace(bits.get_mut(node as usize)?, true);
            if before {
                return None;
            }
        }
        fused.extend(bytes(&bits));
    }
    FusionBatch::new(message.configs.len(), slots, fused, limits).ok()
}

/// Bits as bytes, the lowest bit first.
fn bytes(bits: &[bool]) -> Vec<u8> {
    bits.chunks(8)
        .map(|some| {
            some.iter()
                .rev()
                .fold(0, |byte, &bit| byte << 1 | u8::from(bit))
        })
        .collect()
}
