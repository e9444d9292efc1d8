//! Configurations: what a tuner chooses, in every form that they travel in.
//!
//! Each kind of configuration is one folder here (`tile`, `layout`, `fusion`, `feature_set`) and implements the same
//! interface: [`Batch`] holds its configurations, `ReadBatch` reads them, [`Form`] is a wire form of them, and [`RowFinder`]
//! finds their distinct rows. To add a kind, write its folder, and add it to `kinds` and to [`Task`](crate::Task).

mod batch;
mod canonical;
mod changes;
mod checks;
mod configurations;
mod count;
mod distinct;
mod encoded;
mod encoded_form;
mod feature_rows;
mod feature_set;
mod form;
mod fusion;
mod input;
mod kinds;
mod layout;
mod read_batch;
mod row_shape;
mod rows;
mod slices;
mod tile;

pub use batch::Batch;
pub use distinct::Distinct;
pub use encoded::EncodedBatch;
pub use feature_set::NodeFeatureBatch;
pub use form::Form;
pub use fusion::FusionBatch;
pub use input::{ConfigInput, ConfigValues};
pub(crate) use kinds::feature_rows;
pub use kinds::{Configurations, form};
pub use layout::{LAYOUT_VALUES, LayoutBatch, LayoutBatchBuilder, LayoutEntry};
pub use rows::{
    FoundRows, LocalConfigurations, Row, RowFinder, SegmentFacts, TooManyRows, Unscored,
};
pub use tile::{TILE_FEATURES, Tile, TileBatch, TileConfiguration};
