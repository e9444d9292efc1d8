//! The kinds of configuration, listed once. What depends on the kind is asked of its folder.

use std::ops::Deref;

use super::{
    batch::{Batch, FeatureRows, ReadBatch},
    feature_set::NodeFeatureBatch,
    fusion::FusionBatch,
    layout::LayoutBatch,
    rows::RowFinder,
    tile::TileBatch,
};
use crate::{ConfigurationError, Kind, Limits, Scope, SegmentedGraph, Task, program::row_bytes};

/// Defines [`Configurations`] of these kinds. Each is named as its [`Task`] is.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($batch:ty),)*) => {
        /// A batch of configurations of one graph.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Configurations {
            $($(#[$doc])* $kind($batch),)*
        }

        $(impl From<$batch> for Configurations {
            fn from(batch: $batch) -> Self {
                Self::$kind(batch)
            }
        })*

        impl Configurations {
            /// The batch, whatever its kind.
            pub fn batch(&self) -> &(dyn Batch + 'static) {
                match self {
                    $(Self::$kind(batch) => batch,)*
                }
            }

            /// Starts finding the rows of the batch on a graph of its task and slots.
            pub fn into_rows(self, graph: &SegmentedGraph) -> Box<dyn RowFinder> {
                match self {
                    $(Self::$kind(batch) => Box::new(batch).into_rows(graph),)*
                }
            }

            /// Copies the configurations of these numbers, which must be below the length.
            #[must_use]
            pub fn select(&self, numbers: &[usize]) -> Self {
                match self {
                    $(Self::$kind(batch) => Self::$kind(batch.select(numbers)),)*
                }
            }

            /// Reads configurations of one graph that [`Self::canonical`] wrote, at least one.
            pub fn from_canonical<'a>(
                task: Task,
                configs: impl IntoIterator<Item = &'a [u8]>,
                limits: &Limits,
            ) -> Result<Self, ConfigurationError> {
                match task {
                    $(Task::$kind => <$batch>::from_canonical(configs, limits).map(Self::$kind),)*
                }
            }
        }

        /// Reads configurations of a task from the rows of an npz file, for a graph with this many slots. `visit` calls its argument
        /// with each row.
        pub(crate) fn read_feature_rows<E>(
            task: Task,
            slots: usize,
            limits: Limits,
            visit: impl FnOnce(&mut dyn FnMut(&[f32]) -> Result<(), ConfigurationError>) -> Result<(), E>,
        ) -> Result<Result<Configurations, ConfigurationError>, E> {
            match task {
                $(Task::$kind => {
                    let mut rows = <$batch>::feature_rows(slots, limits);
                    visit(&mut |row| rows.push_row(row))?;
                    Ok(rows.finish().map(Configurations::$kind))
                })*
            }
        }
    };
}

kinds! {
    /// Layouts of the configurable nodes of a module.
    Layout(LayoutBatch),
    /// Tiles of a kernel.
    Tile(TileBatch),
    /// Fusions of a program.
    Fusion(FusionBatch),
    /// Columns of a feature set for every node.
    FeatureSet(NodeFeatureBatch),
}

impl Deref for Configurations {
    type Target = dyn Batch;

    fn deref(&self) -> &Self::Target {
        self.batch()
    }
}

/// The shape of an array of configurations in an npz file.
impl Kind {
    /// Number of columns of a slot or node in a row, given those of its feature set; 1 if the values of a row mean the same.
    pub fn row_columns(&self, of_set: Option<usize>) -> usize {
        of_set.unwrap_or(self.width).max(1)
    }

    /// Number of values per configuration in an array of this shape, for a graph with this many slots; `None` if the array
    /// has another shape.
    pub(crate) fn row_length(&self, slots: usize, shape: &[usize]) -> Option<usize> {
        match (self.scope, shape) {
            (Scope::Kernel, [_, width]) if *width == self.width => Some(self.width),
            (Scope::Nodes, [_, nodes, width]) if [*nodes, *width] == [slots, self.width] => {
                Some(slots * self.width)
            }
            // The same values, with one axis for the tensors of an entry and one for their
            // dimensions.
            (Scope::Nodes, [_, nodes, tensors @ 3, dimensions @ 6])
                if *nodes == slots && tensors.checked_mul(*dimensions) == Some(self.width) =>
            {
                Some(slots * self.width)
            }
            (Scope::Program, [_, bytes]) if *bytes == row_bytes(slots) => Some(*bytes),
            (Scope::EveryNode, [_, nodes, width]) if *nodes == slots && *width > 0 => {
                slots.checked_mul(*width)
            }
            _ => None,
        }
    }

    /// Returns the shape that the array must have, in words.
    pub(crate) fn expected_shape(&self, slots: usize) -> String {
        let width = self.width;
        match self.scope {
            Scope::Kernel => format!("[configurations, {width}]"),
            Scope::Nodes => {
                format!("[configurations, {slots}, {width}], because the graph has {slots} slots")
            }
            Scope::Program => {
                format!(
                    "[configurations, {}], because the graph has {slots} slots",
                    row_bytes(slots)
                )
            }
            Scope::EveryNode => {
                format!("[configurations, {slots}, columns], because the graph has {slots} nodes")
            }
        }
    }
}
