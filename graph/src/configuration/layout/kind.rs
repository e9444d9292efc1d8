//! Layouts behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;
use prost::encoding::encode_varint;

use super::{
    batch::{LayoutBatch, LayoutBatchBuilder},
    check::check,
    entry::{LAYOUT_VALUES, LayoutEntry},
    rows::LayoutRows,
};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph, Task,
    configuration::{
        batch::{Batch, FeatureRows, ReadBatch, append_nodes, joined, number},
        distinct::Distinct,
        rows::{ConfigInput, ConfigValues, RowFinder},
    },
};

/// Maximum number of bytes of a change in the delta form, if tables are not huge. A packed entry takes one or two.
const CHANGE_BYTES: usize = 4;

impl Batch for LayoutBatch {
    fn task(&self) -> Task {
        Task::Layout
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn check(&self, graph: &Graph) -> Result<(), ConfigurationError> {
        check(self, graph)
    }

    /// Layouts are equal if all their entries are.
    fn distinct(&self) -> Distinct {
        Distinct::new(self.len(), |config| self.row(config))
    }

    fn input(&self, configs: &[usize]) -> ConfigInput {
        let entries = |&config| (0..self.slots()).map(move |slot| self.entry(config, slot));
        let values = configs
            .iter()
            .flat_map(entries)
            .flat_map(LayoutEntry::values);
        let values = ConfigValues::Int64(values.map(i64::from).collect());
        ConfigInput {
            shape: vec![configs.len(), self.slots(), LAYOUT_VALUES],
            values,
        }
    }

    fn feature_row(&self, config: usize) -> Vec<f32> {
        let entries = (0..self.slots()).map(|slot| self.entry(config, slot));
        entries
            .flat_map(LayoutEntry::values)
            .map(f32::from)
            .collect()
    }

    /// The delta form if there are few changes, as in a step of a search, else the packed form.
    fn to_smallest_form(&self) -> Configs {
        if self.changes() * CHANGE_BYTES < self.len() * self.slots() {
            Configs::DeltaLayoutConfigs(self.to_delta())
        } else {
            Configs::PackedLayoutConfigs(self.to_packed())
        }
    }

    fn canonical(&self, config: usize) -> Vec<u8> {
        // The entry of each slot, its three numbers of 17 bits as one varint.
        let mut bytes = Vec::with_capacity(self.slots());
        for slot in 0..self.slots() {
            encode_varint(self.entry(config, slot).bits(), &mut bytes);
        }
        bytes
    }

    fn describe(&self, config: usize, configurable: &[u32]) -> String {
        let entries = configurable.iter().enumerate();
        let entries = entries.map(|(slot, node)| (node, self.entry(config, slot)));
        let set: Vec<_> = entries
            .filter(|(_, entry)| *entry != LayoutEntry::DEFAULT)
            .collect();
        let mut text = format!("{} of {} nodes set", set.len(), configurable.len());
        // The node and its minor-to-major lists as HLO has them: `17 {1,0}{0,1}`.
        let nodes = set.into_iter().map(|(node, entry)| {
            let tensors = entry.tensors().into_iter();
            let tensors = tensors.map(|tensor| format!("{{{}}}", joined(&tensor)));
            format!("{node} {}", tensors.collect::<String>())
        });
        append_nodes(&mut text, ": ", nodes);
        text
    }

    fn into_rows(self: Box<Self>, graph: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(LayoutRows::new(*self, graph))
    }
}

impl ReadBatch for LayoutBatch {
    type Rows = LayoutBatchBuilder;

    fn feature_rows(slots: usize, limits: Limits) -> LayoutBatchBuilder {
        LayoutBatchBuilder::new(slots, limits)
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let mut builder: Option<LayoutBatchBuilder> = None;
        let mut entries = Vec::new();
        for mut config in configs {
            entries.clear();
            while !config.is_empty() {
                let bits = number(&mut config)?;
                let what = || format!("slot {}", entries.len());
                let entry = LayoutEntry::from_bits(bits, what)?;
                entries.push(entry);
            }
            // The bytes do not say the number of slots. The first configuration does, and the
            // builder refuses any other.
            let builder =
                builder.get_or_insert_with(|| LayoutBatchBuilder::new(entries.len(), *limits));
            builder.push(&entries)?;
        }
        builder.ok_or(ConfigurationError::Empty)?.build()
    }
}

/// Reads layouts from an npz file: `[slots, 18]` values per configuration, which such files store as f32.
impl FeatureRows<LayoutBatch> for LayoutBatchBuilder {
    fn push_row(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        let (entries, _) = row.as_chunks::<LAYOUT_VALUES>();
        let entries = entries.iter().enumerate().map(|(slot, values)| {
            let what = || format!("configuration {}, slot {slot}", self.len());
            // A cast saturates and takes NaN for 0. The way back shows whether it changed the value.
            #[expect(clippy::cast_possible_truncation, reason = "checked to be the same")]
            let numbers = values.map(|value| value as i32);
            #[expect(
                clippy::cast_precision_loss,
                reason = "a number that differs is refused"
            )]
            let is_same = numbers.map(|number| number as f32) == *values;
            if !is_same {
                return Err(ConfigurationError::NotWhole { what: what() });
            }
            LayoutEntry::from_values(&numbers, what)
        });
        let entries: Vec<LayoutEntry> = entries.collect::<Result<_, _>>()?;
        self.push(&entries)
    }

    fn finish(self) -> Result<LayoutBatch, ConfigurationError> {
        self.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_holds_its_configurations_slot_by_slot() {
        let entry = |value| LayoutEntry::from_values(&[value; LAYOUT_VALUES], String::new).unwrap();
        let mut builder = LayoutBatchBuilder::new(2, Limits::default());
        for config in [[1, -1], [2, 5], [0, 4]] {
            builder.push(&config.map(entry)).unwrap();
        }
        let ConfigInput { shape, mut values } = builder.build().unwrap().input(&[2, 0]);
        let expected = [0, 4, 1, -1].map(|value| [value; LAYOUT_VALUES]);
        assert_eq!(shape, [2, 2, LAYOUT_VALUES]);
        assert_eq!(values.int64().unwrap(), expected.as_flattened());
    }

    fn layout(nodes: &[&[[i32; 4]]]) -> String {
        let entry = |tensors: &&[[i32; 4]]| LayoutEntry::from_tensors(tensors.iter()).unwrap();
        let entries: Vec<LayoutEntry> = nodes.iter().map(entry).collect();
        let mut builder = LayoutBatchBuilder::new(nodes.len(), Limits::default());
        builder.push(&entries).unwrap();
        let configurable: Vec<u32> = (10..).take(nodes.len()).collect();
        builder.build().unwrap().describe(0, &configurable)
    }

    #[test]
    fn only_nodes_that_are_set_are_shown_and_many_are_cut_short() {
        assert_eq!(
            layout(&[&[], &[[1, 0, 2, 3]], &[]]),
            "1 of 3 nodes set: 11 {1,0,2,3}"
        );
        assert_eq!(layout(&[&[]]), "0 of 1 nodes set");
        let entry: &[[i32; 4]] = &[[3, 2, 1, 0], [0, 1, 2, 3]];
        let text = layout(&[entry; 20]);
        assert!(
            text.starts_with("20 of 20 nodes set: 10 {3,2,1,0}{0,1,2,3}, 11 "),
            "{text}"
        );
        assert!(text.ends_with(", …") && text.len() < 100, "{text}");
    }
}
