//! Tile batches as messages hold them.

use hlorank_proto::v1::{PackedTileConfigs, TileConfigs, config_batch::Configs};
use prost::Message as _;

use super::TileBatch;
use crate::{
    ConfigurationError, Limits,
    configuration::{
        Configurations, Form, Task,
        form::{DECODED, cut_rows},
    },
};

impl Form for TileConfigs {
    fn task(&self) -> Task {
        Task::Tile
    }

    fn field(&self) -> &'static str {
        "tile_configs"
    }

    fn count(&self) -> usize {
        self.configs.len()
    }

    fn read_bytes(&self, _: usize, _: &Limits) -> usize {
        self.encoded_len() * (DECODED + 1)
    }

    fn read(&self, _: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError> {
        TileBatch::from_readable(self, limits).map(Configurations::Tile)
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |configs: &[_]| Configs::TileConfigs(Self { configs: configs.to_vec() });
        self.configs.chunks(size).map(part).collect()
    }
}

impl Form for PackedTileConfigs {
    fn task(&self) -> Task {
        Task::Tile
    }

    fn field(&self) -> &'static str {
        "packed_tile_configs"
    }

    fn count(&self) -> usize {
        self.config_count as usize
    }

    fn read_bytes(&self, _: usize, _: &Limits) -> usize {
        self.encoded_len()
    }

    fn read(&self, _: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError> {
        TileBatch::from_packed(self, limits).map(Configurations::Tile)
    }

    fn cut(&self, size: usize) -> Vec<Configs> {
        let part = |(config_count, bounds): (u32, &[u8])| {
            Configs::PackedTileConfigs(Self { config_count, bounds: bounds.to_vec().into(), ..*self })
        };
        cut_rows(&self.bounds, self.config_count, size).map(part).collect()
    }
}
