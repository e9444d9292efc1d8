use super::{TILE_FEATURES, TileBatch};
use crate::{
    Segment, SegmentedGraph,
    configuration::{
        ConfigValues,
        count::to_u32,
        rows::{FoundRows, LocalConfigurations, MAX_ROWS, Row, RowFinder, TooManyRows},
    },
};

/// Finds the rows of tiles: every segment of a kernel sees the whole tile.
pub(super) struct TileRows {
    batch: TileBatch,
    locals: LocalTiles,
}

/// The features of each distinct tile.
#[derive(Default)]
struct LocalTiles(Vec<[f32; TILE_FEATURES]>);

impl TileRows {
    pub(super) fn new(batch: TileBatch) -> Self {
        Self {
            batch,
            locals: LocalTiles::default(),
        }
    }

    /// Adds the rows of a new tile.
    fn add_rows(
        &mut self,
        config: usize,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        // Every segment sees the whole tile, so a new tile makes a new row of each, and no row of
        // two tiles is the same.
        let first = found.rows.len();
        let local = self.locals.0.len();
        let segments = 0..graph.segments.len();
        if first + segments.len() > MAX_ROWS {
            return Err(TooManyRows);
        }
        self.locals.0.push(self.batch.get(config).view().features());
        found
            .rows
            .extend(segments.map(|segment| Row { segment, local }));
        let occurrences = graph.occurrences.iter();
        let row_of = occurrences.map(|occurrence| to_u32(first + occurrence.segment));
        found.row_of.extend(row_of);
        Ok(())
    }
}

impl RowFinder for TileRows {
    fn configs(&self) -> usize {
        self.batch.len()
    }

    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows> {
        let Some(config) = found.add_config(graph, |config| self.batch.key(config))? else {
            return Ok(());
        };
        self.add_rows(config, graph, found)
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
}
