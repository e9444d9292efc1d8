//! HLO graphs as a cost model sees them: read, featurized, pruned, cut into segments and hashed; and the
//! configurations of them, in every form they travel in.
//!
//! Pure and synchronous: no network, no model. The server, the command line and, through it, training use this
//! one featurizer.

mod cut;
mod error;
mod features;
mod file;
mod file_kind;
mod graph;
mod hash;
mod layout;
mod limits;
mod measured_graph;
mod module;
mod node_description;
mod npz;
mod opcode;
mod prune;
mod shortened;
mod text;
mod tile;
mod tuning;
mod wire;

pub use cut::{MAX_SEGMENT_NODES, Occurrence, Segment, SegmentedGraph, Summary};
pub use error::{ConfigurationError, FileError, GraphError, TextError};
pub use features::{FEATURES, FeatureSet, Pad, SequenceLengths, feature_digest};
pub use file::GraphFile;
pub use file_kind::FileKind;
pub use graph::{Graph, GraphArrays, Task};
pub use hash::Digest;
pub use layout::{LAYOUT_VALUES, LayoutBatch, LayoutBatchBuilder, LayoutEntry};
pub use limits::{LimitKind, Limits};
pub use measured_graph::{GraphSource, MeasuredGraph, Measurements};
pub use module::HloModule;
pub use node_description::NodeDescription;
pub use npz::{FeatureFile, GoldenCase, read_golden_cases};
pub use opcode::{is_usually_configurable, opcode_id, opcode_name};
pub use prune::{Pruned, prune};
pub use shortened::shortened;
pub use tile::{TILE_FEATURES, TileBatch, TileConfiguration};

/// A batch of candidates of one graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Configurations {
    /// Layouts of the configurable nodes of a module.
    Layout(LayoutBatch),
    /// Tiles of a kernel.
    Tile(TileBatch),
}

impl Configurations {
    /// Number of candidates.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Layout(batch) => batch.len(),
            Self::Tile(batch) => batch.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those of these numbers, which there must be.
    #[must_use]
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        match self {
            Self::Layout(batch) => Self::Layout(batch.slice(range)),
            Self::Tile(batch) => Self::Tile(batch.slice(range)),
        }
    }

    /// The task that such configurations belong to.
    #[must_use]
    pub fn task(&self) -> Task {
        match self {
            Self::Layout(_) => Task::Layout,
            Self::Tile(_) => Task::Tile,
        }
    }
}
