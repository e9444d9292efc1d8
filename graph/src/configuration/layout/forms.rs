//! Layout batches as messages hold them.

use hlorank_proto::v1::{DeltaLayoutConfigs, LayoutConfigs, PackedLayoutConfigs, config_batch::Configs};

use crate::configuration::{Form, form::cut_rows};

impl Form for LayoutConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| Configs::LayoutConfigs(Self { configs: configs.to_vec() });
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedLayoutConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
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
    fn count(&self) -> usize {
        self.change_counts.len()
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
