//! Tiles behind the interface of configuration kinds.

use hlorank_proto::v1::config_batch::Configs;

use super::batch::{TILE_FEATURES, TileBatch, TileConfiguration};
use crate::{
    ConfigurationError, Graph, Limits, LoopNest, Segment, SegmentedGraph, Task,
    configuration::{
        batch::{Batch, FeatureRows, ReadBatch, joined, malformed, number},
        checks::to_u32,
        distinct::Distinct,
        rows::{
            ConfigInput, ConfigValues, FoundRows, LocalConfigurations, MAX_ROWS, Row, RowFinder,
            TooManyRows,
        },
    },
    pace,
};

/// Names of the lists of bounds.
const LISTS: [&str; 3] = ["kernel_bounds", "output_bounds", "input_bounds"];

impl Batch for TileBatch {
    fn task(&self) -> Task {
        Task::Tile
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    /// Checks that all bounds are at least 1, and that the tile of each list has a number of elements of 64 bits.
    fn check(&self, _: &Graph) -> Result<(), ConfigurationError> {
        for (config, tile) in pace::in_steps(64, self.iter()).enumerate() {
            for (list, bounds) in LISTS.into_iter().zip(tile.view().lists()) {
                if let Some(&found) = bounds.iter().find(|bound| **bound < 1) {
                    return Err(ConfigurationError::Bound {
                        config,
                        list,
                        found,
                    });
                }
                let mut bounds = bounds.iter();
                let elements = bounds.try_fold(1_i64, |product, bound| product.checked_mul(*bound));
                if elements.is_none() {
                    return Err(ConfigurationError::TileTooLarge { config, list });
                }
            }
        }
        Ok(())
    }

    /// Tiles are equal if their features are.
    fn distinct(&self) -> Distinct {
        Distinct::new(self.len(), |config| self.key(config))
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
        let tile = self.get(config);
        let lists = ["kernel", "output", "input"].into_iter();
        let lists = lists.zip(tile.view().lists());
        let shown: Vec<String> = lists
            .filter(|(_, bounds)| !bounds.is_empty())
            .map(|(name, bounds)| format!("{name} [{}]", joined(bounds)))
            .collect();
        if shown.is_empty() {
            "no bounds".to_owned()
        } else {
            shown.join(" ")
        }
    }

    fn into_rows(self: Box<Self>, _: &SegmentedGraph) -> Box<dyn RowFinder> {
        Box::new(TileRows {
            batch: *self,
            locals: LocalTiles::default(),
        })
    }
}

impl ReadBatch for TileBatch {
    type Rows = TileFeatureRows;

    fn feature_rows(_: usize, limits: Limits) -> TileFeatureRows {
        TileFeatureRows {
            batch: Self::default(),
            limits,
        }
    }

    fn from_canonical<'a>(
        configs: impl IntoIterator<Item = &'a [u8]>,
        limits: &Limits,
    ) -> Result<Self, ConfigurationError> {
        let mut batch = Self::default();
        for mut config in configs {
            // A byte whose bits say which lists have bounds, then the length and the bounds of each.
            let present = number(&mut config)?;
            let mut lists = [const { Vec::new() }; 3];
            for (bit, list) in lists.iter_mut().enumerate() {
                if present >> bit & 1 == 0 {
                    continue;
                }
                // Every bound takes at least one byte, so the count is bounded by the rest before a
                // list of it is made.
                let count = number(&mut config)?;
                if count > config.len() as u64 {
                    return Err(malformed(&format!("list {bit} of a tile ends early")));
                }
                let bounds = (0..count).map(|_| number(&mut config).map(u64::cast_signed));
                *list = bounds.collect::<Result<_, _>>()?;
            }
            if !config.is_empty() {
                return Err(malformed("a tile has bytes after its bounds"));
            }
            let lists = lists.each_ref().map(Vec::as_slice);
            batch.push(TileConfiguration::new(lists), limits)?;
        }
        if batch.is_empty() {
            return Err(ConfigurationError::Empty);
        }
        Ok(batch)
    }
}

/// Reads tiles from an npz file: 24 features per configuration.
pub(in crate::configuration) struct TileFeatureRows {
    batch: TileBatch,
    limits: Limits,
}

impl FeatureRows<TileBatch> for TileFeatureRows {
    fn push_row(&mut self, row: &[f32]) -> Result<(), ConfigurationError> {
        self.batch.push_features(row, &self.limits)
    }

    fn finish(self) -> Result<TileBatch, ConfigurationError> {
        Ok(self.batch)
    }
}

/// Finds the rows of tiles: every segment of a kernel sees the whole tile.
pub(super) struct TileRows {
    batch: TileBatch,
    locals: LocalTiles,
}

/// The features of each distinct tile.
#[derive(Default)]
struct LocalTiles(Vec<[f32; TILE_FEATURES]>);

impl RowFinder for TileRows {
    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        let Some(config) = found.add_config(graph, |config| self.batch.key(config))? else {
            return Ok(());
        };
        // Every segment sees the whole tile, so a new tile makes a new row of each, and no row of
        // two tiles is the same.
        let first = found.rows.len();
        let local = self.locals.0.len();
        let segments = 0..graph.segments.len();
        if first + segments.len() > MAX_ROWS {
            return Err(TooManyRows);
        }
        self.locals.0.push(self.batch.get(config).view().features());
        let rows = segments.map(|segment| Row { segment, local });
        found.rows.extend(rows);
        let occurrences = graph.occurrences.iter();
        let row_of = occurrences.map(|occurrence| to_u32(first + occurrence.segment));
        found.row_of.extend(row_of);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations> {
        Box::new(self.locals)
    }
}

impl LocalConfigurations for LocalTiles {
    fn hash(&self, row: Row, hasher: &mut blake3::Hasher) {
        hasher.update(self.0[row.local].map(f32::to_le_bytes).as_flattened());
    }

    fn write(&self, row: Row, _: &Segment, _: usize, values: &mut ConfigValues) {
        if let Some(values) = values.float32() {
            values.extend_from_slice(&self.0[row.local]);
        }
    }

    fn write_loops(&self, row: Row, loops: &LoopNest, values: &mut ConfigValues) {
        if let Some(values) = values.float32() {
            loops.write(&self.0[row.local], values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::tile::batch::tests::batch;

    #[test]
    fn only_lists_with_bounds_are_shown() {
        let tiles = batch(&[[vec![3, 1], vec![8, 128], vec![]], [vec![], vec![], vec![]]]);
        assert_eq!(tiles.describe(0, &[]), "kernel [3,1] output [8,128]");
        assert_eq!(tiles.describe(1, &[]), "no bounds");
    }
}
