use std::{borrow::Cow, hash::Hash};

use super::distinct::Distinct;
use crate::{Digest, Element, KernelTooLarge, LoopNest, Segment, SegmentedGraph};

/// A pair of segment and local configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Position in [`SegmentedGraph::segments`], or among the kernels of the batch if configurations decide the segments.
    pub segment: usize,
    /// Number of the local configuration, given by the kind.
    pub local: usize,
}

/// The rows that a batch needs, each distinct one once.
///
/// Equality is by content throughout: hash tables compare what they hold.
#[derive(Default)]
pub struct FoundRows {
    /// Which configurations differ.
    pub distinct: Distinct,
    /// Rows that differ.
    pub rows: Vec<Row>,
    /// The rows of each distinct configuration, one configuration after the other.
    pub row_of: Vec<u32>,
    /// Rows that every configuration has beside its own.
    pub common: Vec<u32>,
    /// Configurations that get no score. They have no rows.
    pub unscored: Vec<UnscoredConfig>,
}

/// A configuration that gets no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnscoredConfig {
    /// Its number in the batch.
    pub config: usize,
    /// The reason.
    pub reason: KernelTooLarge,
}

/// What the engine needs to know of a segment before it evaluates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its digest.
    pub digest: Digest,
    /// Its number of nodes.
    pub nodes: usize,
}

/// Finds the rows of a batch, one configuration at a time.
pub trait RowFinder: Send {
    /// Looks at the next configuration of the batch, and adds its rows if it is a new one. Every call gets the same
    /// graph.
    fn find_next(
        &mut self,
        graph: &SegmentedGraph,
        found: &mut FoundRows,
    ) -> Result<(), TooManyRows>;

    /// Returns the local configurations of the rows found.
    fn finish(self: Box<Self>) -> Box<dyn LocalConfigurations>;
}

/// The segments and the local configurations of the rows of a batch.
pub trait LocalConfigurations: Send + Sync {
    /// Returns the facts of a row's segment.
    fn facts(&self, row: Row, graph: &SegmentedGraph) -> SegmentFacts {
        let segment = &graph.segments[row.segment];
        SegmentFacts {
            digest: segment.digest,
            nodes: segment.len(),
        }
    }

    /// Returns the segment of a row. Kernels of a fusion are made anew, since all of them would take much memory.
    fn segment<'a>(&'a self, row: Row, graph: &'a SegmentedGraph) -> Cow<'a, Segment> {
        Cow::Borrowed(&graph.segments[row.segment])
    }

    /// Number of bytes that this holds beside the batch.
    fn bytes(&self) -> usize {
        0
    }

    /// Feeds a hasher what makes the local configuration of a row differ from others of its segment.
    fn hash(&self, row: Row, hasher: &mut blake3::Hasher);

    /// Appends the encoder input of a row, its segment padded to `nodes` nodes. Values of another element type stay as
    /// they are.
    fn write(&self, row: Row, segment: &Segment, nodes: usize, values: &mut ConfigValues);

    /// Appends the columns of a row that follow from the loops of its kernel. Only tiles have any.
    fn write_loops(&self, _row: Row, _loops: &LoopNest, _values: &mut ConfigValues) {}
}

/// The model input `config`: dense, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigInput {
    /// `[rows, nodes, width]` for a kind that sets nodes, else `[rows, width]`.
    pub shape: Vec<usize>,
    /// As many values as the shape has places.
    pub values: ConfigValues,
}

/// Values of a [`ConfigInput`], of the element type of its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValues {
    /// 32-bit floating point.
    Float32(Vec<f32>),
    /// 64-bit integers.
    Int64(Vec<i64>),
}

impl ConfigValues {
    /// No values of this type yet.
    pub fn new(element: Element) -> Self {
        match element {
            Element::Float32 => Self::Float32(Vec::new()),
            Element::Int64 => Self::Int64(Vec::new()),
        }
    }

    /// The floating-point values; `None` if the element type is another.
    pub fn float32(&mut self) -> Option<&mut Vec<f32>> {
        match self {
            Self::Float32(values) => Some(values),
            Self::Int64(_) => None,
        }
    }

    /// The integers; `None` if the element type is another.
    pub fn int64(&mut self) -> Option<&mut Vec<i64>> {
        match self {
            Self::Int64(values) => Some(values),
            Self::Float32(_) => None,
        }
    }
}

/// Limit on the distinct rows of one call.
pub(super) const MAX_ROWS: usize = 4 << 20;

/// Limit on the distinct kernels of one call, each of which takes some hundred bytes.
pub(super) const MAX_KERNELS: usize = 1 << 18;

/// Limit on the rows of one call, summed over its distinct configurations.
const MAX_ROWS_OF_CONFIGS: usize = 64 << 20;

/// A batch that needs more memory than one call may take. The rows are counted before memory is taken for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the batch needs too much memory: the embeddings of more than {MAX_ROWS} distinct pairs of segment and local \
     configuration ({MAX_KERNELS} kernels of fusions), or of more than 1 GiB, or more than {MAX_ROWS_OF_CONFIGS} pairs \
     over all configurations; send several batches"
)]
pub struct TooManyRows;

impl FoundRows {
    /// Nothing was found yet of this number of configurations, each with this number of rows.
    pub fn with_capacity(configs: usize, rows_per_config: usize) -> Self {
        // All configurations may differ, and a list that grows is copied several times. Places that
        // stay unused cost no memory, because the system gives a page at its first use.
        let rows = configs
            .saturating_mul(rows_per_config)
            .min(MAX_ROWS_OF_CONFIGS);
        Self {
            distinct: Distinct::with_capacity(configs),
            row_of: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// Looks at the next configuration, whose content `item` returns by number. Returns its number if it is a new one
    /// whose rows are to be added.
    pub(super) fn add_config<T: Hash + Eq>(
        &mut self,
        graph: &SegmentedGraph,
        item: impl Fn(usize) -> T,
    ) -> Result<Option<usize>, TooManyRows> {
        let config = self.distinct.of_config.len();
        if !self.distinct.add(item) {
            return Ok(None);
        }
        // `row_of` grows with every distinct configuration, even if all of its rows are known, so
        // it has a limit of its own.
        if self.row_of.len().saturating_add(graph.rows_per_config()) > MAX_ROWS_OF_CONFIGS {
            return Err(TooManyRows);
        }
        Ok(Some(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configurations, HloModule, Limits, Task, TileBatch, TileConfiguration};

    #[test]
    fn a_call_may_have_as_many_rows_as_the_limits_and_no_more() {
        let text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[8] parameter(0)\n}\n";
        let module = HloModule::read_text(text, &Limits::default()).unwrap();
        let graph = SegmentedGraph::new(&module.into_graph(Task::Tile, Vec::new()).unwrap());
        let mut tiles = TileBatch::default();
        let tile = TileConfiguration {
            kernel_bounds: &[8],
            output_bounds: &[],
            input_bounds: &[],
        };
        tiles.push(tile, &Limits::default()).unwrap();
        let row = Row {
            segment: 0,
            local: 0,
        };
        for (rows, row_of, expected) in [
            (MAX_ROWS - 1, 0, Ok(())),
            (MAX_ROWS, 0, Err(TooManyRows)),
            (0, MAX_ROWS_OF_CONFIGS - 1, Ok(())),
            (0, MAX_ROWS_OF_CONFIGS, Err(TooManyRows)),
        ] {
            let mut found = FoundRows {
                rows: vec![row; rows],
                row_of: vec![0; row_of],
                ..FoundRows::default()
            };
            let mut finder = Configurations::Tile(tiles.clone()).into_rows(&graph);
            assert_eq!(finder.find_next(&graph, &mut found), expected);
        }
    }
}
