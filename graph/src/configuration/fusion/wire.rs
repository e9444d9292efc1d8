//! Fusion batches as messages hold them.

use std::ops::Range;

use hlorank_proto::v1::{
    DeltaFusionConfigs, FusionConfigs, PackedFusionConfigs, config_batch::Configs,
};

use crate::configuration::{
    Form,
    changes::{changes_of, cut_changes},
    form::cut_rows,
};

impl Form for FusionConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| {
            Configs::FusionConfigs(Self {
                configs: configs.to_vec(),
            })
        };
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedFusionConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, fused): (u32, &[u8])| {
            Configs::PackedFusionConfigs(Self {
                config_count,
                fused: fused.to_vec().into(),
            })
        };
        cut_rows(&self.fused, self.config_count, size)
            .map(part)
            .collect()
    }
}

impl Form for DeltaFusionConfigs {
    fn count(&self) -> usize {
        self.change_counts.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(change_counts, range): (Vec<u32>, Range<usize>)| {
            let change_slots = changes_of(&self.change_slots, range);
            Configs::DeltaFusionConfigs(Self {
                base: self.base.clone(),
                change_counts,
                change_slots,
            })
        };
        cut_changes(&self.change_counts, size).map(part).collect()
    }
}
