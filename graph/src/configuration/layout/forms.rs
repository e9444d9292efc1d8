//! Layout batches as messages hold them.

use std::ops::Range;

use hlorank_proto::v1::{
    DeltaLayoutConfigs, LayoutConfigs, PackedLayoutConfigs, config_batch::Configs,
};

use crate::configuration::{
    Form,
    changes::{changes_of, cut_changes},
    form::cut_rows,
};

impl Form for LayoutConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| {
            Configs::LayoutConfigs(Self {
                configs: configs.to_vec(),
            })
        };
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedLayoutConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, indices): (u32, &[u8])| {
            Configs::PackedLayoutConfigs(Self {
                config_count,
                // Parts share no message, so each has all tables, which are small beside the
                // indices.
                tables: self.tables.clone(),
                indices: indices.to_vec().into(),
            })
        };
        cut_rows(&self.indices, self.config_count, size)
            .map(part)
            .collect()
    }
}

impl Form for DeltaLayoutConfigs {
    fn count(&self) -> usize {
        self.change_counts.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(change_counts, range): (Vec<u32>, Range<usize>)| {
            Configs::DeltaLayoutConfigs(Self {
                tables: self.tables.clone(),
                base: self.base.clone(),
                change_counts,
                change_slots: changes_of(&self.change_slots, range.clone()),
                change_entries: changes_of(&self.change_entries, range),
            })
        };
        cut_changes(&self.change_counts, size).map(part).collect()
    }
}
