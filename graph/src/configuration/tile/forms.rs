//! Tile batches as messages hold them.

use hlorank_proto::v1::{PackedTileConfigs, TileConfigs, config_batch::Configs};

use crate::configuration::{Form, form::cut_rows};

impl Form for TileConfigs {
    fn count(&self) -> usize {
        self.configs.len()
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| {
            Configs::TileConfigs(Self {
                configs: configs.to_vec(),
            })
        };
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedTileConfigs {
    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, bounds): (u32, &[u8])| {
            Configs::PackedTileConfigs(Self {
                config_count,
                bounds: bounds.to_vec().into(),
                ..*self
            })
        };
        cut_rows(&self.bounds, self.config_count, size)
            .map(part)
            .collect()
    }
}
