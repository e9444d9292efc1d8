//! Configurations: what a tuner chooses, in every form that they travel in.
//!
//! Each kind of configuration is one folder here (`tile`, `layout`, `fusion`, `feature_set`) and implements the same
//! interface: [`Batch`] holds its configurations, `ReadBatch` reads them, `wire` has their forms, and [`RowFinder`] finds their
//! distinct rows. To add a kind, write its folder, and add it to `kinds`, to the forms of `encoded`, and to [`Task`](crate::Task).

mod batch;
mod checks;
mod configurations;
mod distinct;
mod encoded;
mod feature_set;
mod fusion;
mod layout;
mod rows;
mod tile;

pub use batch::Batch;
pub use configurations::Configurations;
pub(crate) use configurations::read_feature_rows;
pub use distinct::Distinct;
pub use encoded::EncodedBatch;
pub use feature_set::NodeFeatureBatch;
pub use fusion::FusionBatch;
pub use layout::{LAYOUT_VALUES, LayoutBatch, LayoutBatchBuilder, LayoutEntry};
pub use rows::{
    ConfigInput, ConfigValues, FoundRows, LocalConfigurations, Row, RowFinder, SegmentFacts,
    TooManyRows, UnscoredConfig,
};
pub use tile::{TILE_FEATURES, Tile, TileBatch, TileConfiguration};
