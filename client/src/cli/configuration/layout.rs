//! Layouts: JSON and random draws.

use fastrand::Rng;
use hlorank_client::v1::{self, config_batch::Configs};
use hlorank_graph::{
    ConfigurationError, Configurations, EncodedBatch, LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    NodeDescription, Task,
};
use serde::{Deserialize, Serialize};

use crate::cli::input::FILE_LIMITS;

/// One layout as JSON.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LayoutForm {
    #[serde(default)]
    nodes: Vec<NodeForm>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct NodeForm {
    node: u32,
    #[serde(default)]
    tensors: Vec<TensorForm>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TensorForm {
    #[serde(default)]
    minor_to_major: Vec<i32>,
}

/// Converts layouts from JSON. `configurable` lists the node of each slot.
pub(super) fn from_forms(
    forms: &[LayoutForm],
    configurable: &[u32],
) -> Result<Configurations, ConfigurationError> {
    // JSON becomes a message of the wire format, and is checked as the server checks one.
    let message = v1::LayoutConfigs {
        configs: forms.iter().map(v1::LayoutConfig::from).collect(),
    };
    let batch = EncodedBatch::try_from(&Configs::LayoutConfigs(message))?;
    batch.read(Task::Layout, configurable, &FILE_LIMITS)
}

/// Returns the number of the layout that sets no node.
pub(super) fn default_number(batch: &LayoutBatch) -> Option<usize> {
    let is_default = |config: &usize| {
        (0..batch.slots()).all(|slot| batch.entry(*config, slot) == LayoutEntry::DEFAULT)
    };
    (0..batch.len()).find(is_default)
}

/// Returns random layouts, each slot of which is taken from any of these layouts.
pub(super) fn recombine(
    own: &LayoutBatch,
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    // A load needs more layouts than the file has. Each slot is drawn by itself, so that its
    // entries are as frequent as in the file, and only their combinations are new.
    build(own.slots(), 0..count, |_, slot| {
        Ok(own.entry(random.usize(..own.len()), slot))
    })
}

/// Returns random layouts of these nodes: the dimensions of every tensor are in random order.
pub(crate) fn random_layouts(
    nodes: &[NodeDescription],
    count: usize,
    random: &mut Rng,
) -> Result<Configurations, ConfigurationError> {
    build(nodes.len(), 0..count, |_, slot| {
        random_entry(&nodes[slot], random)
    })
}

fn random_entry(
    node: &NodeDescription,
    random: &mut Rng,
) -> Result<LayoutEntry, ConfigurationError> {
    let order = |rank: &u32| {
        let mut dimensions: Vec<i32> = (0..).take(*rank as usize).collect();
        random.shuffle(&mut dimensions);
        dimensions
    };
    LayoutEntry::from_tensors(node.tensor_ranks.iter().map(order), || node.name.clone())
}

/// Builds one layout per item, from its entry of each slot.
fn build<T>(
    slots: usize,
    items: impl IntoIterator<Item = T>,
    mut entry: impl FnMut(&T, usize) -> Result<LayoutEntry, ConfigurationError>,
) -> Result<Configurations, ConfigurationError> {
    let mut batch = LayoutBatchBuilder::new(slots, FILE_LIMITS);
    for item in items {
        let entries: Vec<_> = (0..slots)
            .map(|slot| entry(&item, slot))
            .collect::<Result<_, _>>()?;
        batch.push(&entries)?;
    }
    Ok(Configurations::Layout(batch.build()?))
}

impl LayoutForm {
    pub(super) fn of(batch: &LayoutBatch, configurable: &[u32], config: usize) -> Self {
        let tensor = |minor_to_major| TensorForm { minor_to_major };
        let node = |(slot, &node): (usize, &u32)| {
            let tensors = batch.entry(config, slot).tensors();
            let tensors = tensors.into_iter().map(tensor).collect();
            NodeForm { node, tensors }
        };
        let nodes = configurable.iter().enumerate().map(node);
        // A node without tensors is left to the compiler, which is also what a missing node means.
        Self {
            nodes: nodes.filter(|node| !node.tensors.is_empty()).collect(),
        }
    }
}

impl From<&LayoutForm> for v1::LayoutConfig {
    fn from(form: &LayoutForm) -> Self {
        let tensor = |tensor: &TensorForm| v1::TensorLayout {
            minor_to_major: tensor.minor_to_major.clone(),
        };
        let node = |form: &NodeForm| v1::NodeLayout {
            node: form.node,
            tensors: form.tensors.iter().map(tensor).collect(),
        };
        Self {
            nodes: form.nodes.iter().map(node).collect(),
        }
    }
}

/// Returns a layout, the compiler's default and another layout.
pub(super) fn with_default(
    batch: &LayoutBatch,
    best: usize,
    worst: usize,
) -> Result<Configurations, ConfigurationError> {
    let entries = |config| -> Vec<_> {
        let slots = 0..batch.slots();
        slots.map(|slot| batch.entry(config, slot)).collect()
    };
    let default = vec![LayoutEntry::DEFAULT; batch.slots()];
    let mut three = LayoutBatchBuilder::new(batch.slots(), FILE_LIMITS);
    for layout in [entries(best), default, entries(worst)] {
        three.push(&layout)?;
    }
    Ok(Configurations::Layout(three.build()?))
}
