//! Every wire form that can hold a batch. The product writes the smallest one alone.

use hlorank_graph::{Configurations, FusionBatch, LayoutBatch};
use hlorank_proto::v1::{
    FusionConfig, FusionConfigs, LayoutConfig, LayoutConfigs, NodeLayout, TensorLayout,
    config_batch::Configs,
};

/// Returns the number of slots, or of nodes, that each configuration of a batch is of.
#[must_use]
pub fn slots(batch: &Configurations) -> usize {
    match batch {
        Configurations::Tile(_) => 0,
        Configurations::Layout(batch) => batch.slots(),
        Configurations::Fusion(batch) => batch.slots(),
        Configurations::FeatureSet(batch) => batch.nodes(),
    }
}

/// Writes every form that can hold the batch; `nodes` holds the node of each slot.
#[must_use]
pub fn forms(batch: &Configurations, nodes: &[u32]) -> Vec<Configs> {
    match batch {
        Configurations::Layout(batch) => vec![
            Configs::LayoutConfigs(readable_layouts(batch, nodes)),
            Configs::PackedLayoutConfigs(batch.to_packed()),
            Configs::DeltaLayoutConfigs(batch.to_delta()),
        ],
        Configurations::Tile(batch) => {
            let readable = Configs::TileConfigs(batch.to_readable());
            let packed = batch.to_packed().map(Configs::PackedTileConfigs);
            std::iter::once(readable).chain(packed).collect()
        }
        Configurations::Fusion(batch) => vec![
            Configs::FusionConfigs(readable_fusions(batch, nodes)),
            Configs::PackedFusionConfigs(batch.to_packed()),
        ],
        Configurations::FeatureSet(batch) => [batch.to_dense(), batch.to_table()]
            .map(Configs::NodeFeatureConfigs)
            .into(),
    }
}

/// Writes the readable form of layouts. Nodes that keep the compiler's default are left out.
#[must_use]
pub fn readable_layouts(batch: &LayoutBatch, nodes: &[u32]) -> LayoutConfigs {
    let config = |config| {
        let set = nodes.iter().enumerate().map(|(slot, &node)| {
            let tensors = batch.entry(config, slot).tensors().into_iter();
            let tensors = tensors.map(|minor_to_major| TensorLayout { minor_to_major });
            NodeLayout {
                node,
                tensors: tensors.collect(),
            }
        });
        LayoutConfig {
            nodes: set.filter(|node| !node.tensors.is_empty()).collect(),
        }
    };
    LayoutConfigs {
        configs: (0..batch.len()).map(config).collect(),
    }
}

/// Writes the readable form of fusions.
#[must_use]
pub fn readable_fusions(batch: &FusionBatch, nodes: &[u32]) -> FusionConfigs {
    let config = |config| FusionConfig {
        fused_nodes: batch.fused_slots(config).map(|slot| nodes[slot]).collect(),
    };
    FusionConfigs {
        configs: (0..batch.len()).map(config).collect(),
    }
}
