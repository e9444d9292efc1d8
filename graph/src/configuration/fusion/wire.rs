//! Fusion batches as messages hold them.

use hlorank_proto::v1::{DeltaFusionConfigs, FusionConfigs, PackedFusionConfigs, config_batch::Configs};

use crate::configuration::{Form, form::cut_rows};

impl Form for FusionConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| Configs::FusionConfigs(Self { configs: configs.to_vec() });
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedFusionConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, fused): (u32, &[u8])| {
            Configs::PackedFusionConfigs(Self { config_count, fused: fused.to_vec().into() })
        };
        cut_rows(&self.fused, self.config_count, size).map(part).collect()
    }
}

impl Form for DeltaFusionConfigs {
    fn count(&self) -> usize {
        self.change_counts.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let mut first = 0_usize;
        let part = |counts: &[u32]| {
            let range = first..first + counts.iter().map(|count| *count as usize).sum::<usize>();
            first = range.end;
            Configs::DeltaFusionConfigs(Self {
                base: self.base.clone(),
                change_counts: counts.to_vec(),
                // A recorded call may hold another number of changes than it counts, which the server refuses.
                change_slots: self.change_slots.get(range).unwrap_or_default().to_vec(),
            })
        };
        self.change_counts.chunks(size).map(part).collect()
    }
}
