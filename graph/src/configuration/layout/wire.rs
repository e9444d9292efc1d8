//! The readable and the packed form of a layout batch on the wire, equal in meaning.

use std::collections::HashMap;

use hlorank_proto::v1::{
    LayoutConfig, LayoutConfigs, LayoutTable, NodeLayout, PackedLayoutConfigs, TensorLayout,
};

use super::{
    LayoutBatch, LayoutBatchBuilder, LayoutEntry,
    batch::{check_count, check_size, check_table},
};
use crate::{ConfigurationError, Limits, configuration::count::to_u32};

/// Maximum table length for which the packed form takes one byte per index.
const BYTE_TABLE: usize = 256;

impl LayoutBatch {
    /// Reads the readable form; `configurable` holds the node of each slot.
    pub fn from_readable(
        message: &LayoutConfigs,
        configurable: &[u32],
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        check_size(message.configs.len(), configurable.len(), limits)?;
        let slot_of_node: HashMap<u32, usize> = configurable.iter().copied().zip(0..).collect();
        let mut builder = LayoutBatchBuilder::new(configurable.len(), *limits);
        for (config, layout) in message.configs.iter().enumerate() {
            builder.push(&readable_entries(config, layout, &slot_of_node)?)?;
        }
        builder.build()
    }

    /// Writes the readable form; it leaves out nodes that keep the compiler's default.
    #[must_use]
    pub fn to_readable(&self, configurable: &[u32]) -> LayoutConfigs {
        let node = |config, (slot, &node): (usize, &u32)| {
            let tensors = self.entry(config, slot).tensors().into_iter();
            let tensors = tensors.map(|minor_to_major| TensorLayout { minor_to_major }).collect();
            NodeLayout { node, tensors }
        };
        let config = |config| {
            let nodes = configurable.iter().enumerate().map(|slot| node(config, slot));
            LayoutConfig { nodes: nodes.filter(|node| !node.tensors.is_empty()).collect() }
        };
        LayoutConfigs { configs: (0..self.len()).map(config).collect() }
    }

    /// Reads the packed form for a graph of `slots` configurable nodes.
    pub fn from_packed(
        message: &PackedLayoutConfigs,
        slots: usize,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let configs = message.config_count as usize;
        check_size(configs, slots, limits)?;
        check_count("the list of tables", message.tables.len(), slots)?;
        let tables = read_tables(&message.tables)?;
        let width = index_width(&tables);
        check_count("the index matrix (in bytes)", message.indices.len(), configs * slots * width)?;
        let indices = match width {
            1 => message.indices.iter().copied().map(u16::from).collect(),
            _ => message.indices.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect(),
        };
        Self::new(configs, tables, indices, limits)
    }

    /// Writes the packed form.
    #[must_use]
    pub fn to_packed(&self) -> PackedLayoutConfigs {
        let indices = (0..self.len()).flat_map(|config| self.row(config)).copied();
        let indices: Vec<u8> = match self.index_width() {
            1 => indices.map(|index| index.to_le_bytes()[0]).collect(),
            _ => indices.flat_map(u16::to_le_bytes).collect(),
        };
        PackedLayoutConfigs {
            config_count: to_u32(self.len()),
            tables: self.write_tables(),
            indices: indices.into(),
        }
    }

    fn index_width(&self) -> usize {
        let largest = (0..self.slots()).map(|slot| self.table(slot).len()).max().unwrap_or(0);
        if largest <= BYTE_TABLE { 1 } else { 2 }
    }

    pub(super) fn write_tables(&self) -> Vec<LayoutTable> {
        let table = |slot| self.table(slot).iter().flat_map(|entry| entry.numbers()).collect();
        (0..self.slots()).map(|slot| LayoutTable { entries: table(slot) }).collect()
    }
}

fn readable_entries(
    config: usize,
    layout: &LayoutConfig,
    slot_of_node: &HashMap<u32, usize>,
) -> Result<Vec<LayoutEntry>, ConfigurationError> {
    let mut entries = vec![LayoutEntry::DEFAULT; slot_of_node.len()];
    let mut set = vec![false; slot_of_node.len()];
    for NodeLayout { node, tensors } in &layout.nodes {
        let slot =
            *slot_of_node.get(node).ok_or(ConfigurationError::NotConfigurable { config, node: *node })?;
        if std::mem::replace(&mut set[slot], true) {
            return Err(ConfigurationError::SetTwice { config, what: "node", number: *node });
        }
        let tensors = tensors.iter().map(|tensor| &tensor.minor_to_major);
        let what = || format!("configuration {config}, node {node}");
        entries[slot] = LayoutEntry::from_tensors(tensors, what)?;
    }
    Ok(entries)
}

pub(super) fn read_tables(tables: &[LayoutTable]) -> Result<Vec<Vec<LayoutEntry>>, ConfigurationError> {
    tables.iter().enumerate().map(|(slot, table)| read_table(slot, &table.entries)).collect()
}

fn read_table(slot: usize, numbers: &[u32]) -> Result<Vec<LayoutEntry>, ConfigurationError> {
    let (entries, rest) = numbers.as_chunks::<3>();
    if !rest.is_empty() {
        let what = format!("the table of slot {slot} (three numbers an entry)");
        check_count(&what, numbers.len(), (entries.len() + 1) * 3)?;
    }
    check_table(slot, entries.len())?;
    let entry = |(index, numbers): (usize, &[u32; 3])| {
        LayoutEntry::from_numbers(*numbers, || {
            format!("a number of entry {index} in the table of slot {slot}")
        })
    };
    entries.iter().enumerate().map(entry).collect()
}

fn index_width(tables: &[Vec<LayoutEntry>]) -> usize {
    if tables.iter().all(|table| table.len() <= BYTE_TABLE) { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn batches() -> impl Strategy<Value = (LayoutBatch, Vec<u32>)> {
        let entry = proptest::array::uniform18(-1_i32..=5);
        (1_usize..5, 1_usize..9).prop_flat_map(move |(slots, configs)| {
            let config = proptest::collection::vec(entry.clone(), slots);
            let nodes = Just((0..).step_by(3).take(slots).collect::<Vec<u32>>()).prop_shuffle();
            (proptest::collection::vec(config, configs).prop_map(build), nodes)
        })
    }

    fn build(configs: Vec<Vec<[i32; 18]>>) -> LayoutBatch {
        let mut builder = LayoutBatchBuilder::new(configs[0].len(), Limits::default());
        for config in configs {
            let entries = config.iter().map(|values| LayoutEntry::from_values(values, String::new).unwrap());
            builder.push(&entries.collect::<Vec<_>>()).unwrap();
        }
        builder.build().unwrap()
    }

    proptest! {
        #[test]
        fn every_form_gives_the_batch_back((batch, configurable) in batches()) {
            let limits = Limits::default();
            let readable = batch.to_readable(&configurable);
            prop_assert_eq!(&LayoutBatch::from_readable(&readable, &configurable, &limits).unwrap(), &batch);
            let packed = batch.to_packed();
            prop_assert_eq!(&LayoutBatch::from_packed(&packed, batch.slots(), &limits).unwrap(), &batch);
            let delta = batch.to_delta();
            prop_assert_eq!(&LayoutBatch::from_delta(&delta, batch.slots(), &limits).unwrap(), &batch);
        }
    }

    #[test]
    fn tables_past_a_byte_take_two_bytes_an_index() {
        let configs =
            (0..300).map(|config| vec![std::array::from_fn(|value| (config >> value) % 2)]).collect();
        let batch = build(configs);
        let packed = batch.to_packed();
        assert_eq!(packed.indices.len(), 600);
        assert_eq!(LayoutBatch::from_packed(&packed, 1, &Limits::default()).unwrap(), batch);
    }
}
