//! Layout batches as messages hold them.

use hlorank_proto::v1::{DeltaLayoutConfigs, LayoutConfigs, PackedLayoutConfigs, config_batch::Configs};
use prost::Message as _;

use super::LayoutBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::{
        Configurations, Form, Task,
        form::{DECODED, cut_rows},
    },
};

/// Bytes of the index matrix of a batch. A batch over the limit is refused before its matrix is built.
fn matrix_bytes(count: usize, slots: usize, limits: &Limits) -> usize {
    count.saturating_mul(slots).min(limits.config_entries) * size_of::<u16>()
}

impl Form for LayoutConfigs {
    fn task(&self) -> Task {
        Task::Layout
    }

    fn field(&self) -> &'static str {
        "layout_configs"
    }

    fn count(&self) -> usize {
        self.configs.len()
    }

    fn read_bytes(&self, slots: usize, limits: &Limits) -> usize {
        self.encoded_len() * DECODED + matrix_bytes(self.count(), slots, limits)
    }

    fn read(&self, configurable: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError> {
        LayoutBatch::from_readable(self, configurable, limits).map(Configurations::Layout)
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| Configs::LayoutConfigs(Self { configs: configs.to_vec() });
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedLayoutConfigs {
    fn task(&self) -> Task {
        Task::Layout
    }

    fn field(&self) -> &'static str {
        "packed_layout_configs"
    }

    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn read_bytes(&self, slots: usize, limits: &Limits) -> usize {
        matrix_bytes(self.count(), slots, limits)
    }

    fn read(&self, configurable: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError> {
        LayoutBatch::from_packed(self, configurable.len(), limits).map(Configurations::Layout)
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, indices): (u32, &[u8])| {
            let (tables, indices) = (self.tables.clone(), indices.to_vec().into());
            Configs::PackedLayoutConfigs(Self { config_count, tables, indices })
        };
        cut_rows(&self.indices, self.config_count, size).map(part).collect()
    }
}

impl Form for DeltaLayoutConfigs {
    fn task(&self) -> Task {
        Task::Layout
    }

    fn field(&self) -> &'static str {
        "delta_layout_configs"
    }

    fn count(&self) -> usize {
        self.change_counts.len()
    }

    fn read_bytes(&self, slots: usize, limits: &Limits) -> usize {
        matrix_bytes(self.count(), slots, limits)
    }

    fn read(&self, configurable: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError> {
        LayoutBatch::from_delta(self, configurable.len(), limits).map(Configurations::Layout)
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let mut first = 0_usize;
        let part = |counts: &[u32]| {
            let range = first..first + counts.iter().map(|count| *count as usize).sum::<usize>();
            first = range.end;
            // A recorded call may hold another number of changes than it counts, which the server refuses.
            let part = |numbers: &[u32]| numbers.get(range.clone()).unwrap_or_default().to_vec();
            Configs::DeltaLayoutConfigs(Self {
                tables: self.tables.clone(),
                base: self.base.clone(),
                change_counts: counts.to_vec(),
                change_slots: part(&self.change_slots),
                change_entries: part(&self.change_entries),
            })
        };
        self.change_counts.chunks(size).map(part).collect()
    }
}
