//! Tiles behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;

use super::{
    TILE_FEATURES, TileBatch, canonical,
    check::check,
    describe::describe,
    encoded::{PACKED_TILES, READABLE_TILES},
    rows::TileRows,
};
use crate::{
    ConfigurationError, Graph, Limits, SegmentedGraph, Task,
    configuration::{
        Batch, ConfigInput, ConfigValues, Distinct, Form, RowFinder, encoded_form::EncodedForm,
        feature_rows::FeatureRows, read_batch::ReadBatch,
    },
};

impl Batch for TileBatch {
    fn task(&self) -> Task {
        Task::Tile
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn check(&self, _: &Graph) -> Result<(), ConfigurationError> {
        check(self)
    }

    /// Tiles are equal if their features are.
    fn distinct(&self) -> Distinct {
        Distinct::of(self.len(), |config| self.key(config))
    }

    fn input(&self, configs: &[usize]) -> ConfigInput {
        let values = configs
            .iter()
            .flat_map(|&config| self.get(config).view().features())
            .collect();
        ConfigInput {
            shape: vec![configs.len(), TILE_FEATURES],
            values: ConfigValues::Float32(values),
        }
    }

    fn feature_row(&self, config: usize) -> Vec<f32> {
        self.get(config).view().features().to_vec()
    }

    fn to_forms(&self, _: &[u32]) -> Vec<Configs> {
        let readable = Configs::TileConfigs(self.to_readable());
        std::iter::once(readable)
            .chain(self.to_packed().map(Configs::PackedTileConfigs))
            .collect()
    }

    /// The packed form, or the readable one for tiles that cannot be packed.
    fn to_smallest_form(&self) -> Configs {
        match self.to_packed() {
            Some(packed) => Configs::PackedTileConfigs(packed),
            None => Configs::TileConfigs(self.to_readable()),
        }
    }

    fn canonical(&self, config: usize) -> Vec<u8> {
        // The bounds and not the features, which several tiles can share.
        self.encoded(config).to_vec()
    }

    fn describe(&self, config: usize, _: &[u32]) -> String {
        describe(self.get(config).view())
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(TileRows::new(*self))
    }
}

impl ReadBatch for TileBatch {
    const FORMS: &'static [EncodedForm<Self>] = &[READABLE_TILES, PACKED_TILES];

    fn form(configs: &Configs) -> Option<&dyn Form> {
        match configs {
            Configs::TileConfigs(message) => Some(message),
            Configs::PackedTileConfigs(message) => Some(message),
            _ => None,
        }
    }

    fn feature_rows(_: usize, limits: Limits) -> Box<dyn FeatureRows<Self>> {
        Box::new(TileFeatureRows {
            batch: Self::default(),
            limits,
        })
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        canonical::read(configs, limits)
    }
}

/// Reads tiles from an npz file: 24 features per configuration.
struct TileFeatureRows {
    batch: TileBatch,
    limits: Limits,
}

impl FeatureRows<TileBatch> for TileFeatureRows {
    fn push(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.batch.push_features(row, &self.limits)
    }

    fn finish(self: Box<Self>) -> Result<TileBatch, ConfigurationError> {
        Ok(self.batch)
    }
}
