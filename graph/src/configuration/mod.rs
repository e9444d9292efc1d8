//! Configurations: what a tuner chooses, in every form that they travel in.
//!
//! Each kind of configuration is one folder here (`tile`, `layout`, `fusion`,
//! `feature_set`) and implements the same interface: [`Kind`] holds
//! its facts, [`Batch`] its configurations, [`Form`] its wire forms, and [`RowFinder`] finds its distinct rows.
//! To add a kind, write its folder, then add it to `task`, `kinds`, `configurations`, `encoded` and `form`.

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
mod kind;
mod kinds;
mod layout;
mod rows;
mod scope;
mod slices;
mod task;
mod tile;

pub use batch::Batch;
pub use configurations::Configurations;
pub use distinct::Distinct;
pub use encoded::EncodedBatch;
pub use feature_rows::FeatureRows;
pub use feature_set::NodeFeatureBatch;
pub use form::{Form, form};
pub use fusion::FusionBatch;
pub use input::{ConfigInput, ConfigValues};
pub use kind::Kind;
pub use layout::{LAYOUT_VALUES, LayoutBatch, LayoutBatchBuilder, LayoutEntry};
pub use rows::{
    FoundRows, LocalConfigurations, Row, RowFinder, SegmentFacts, TooManyRows, Unscored,
};
pub use scope::{Element, Scope};
pub use task::Task;
pub use tile::{TILE_FEATURES, Tile, TileBatch, TileConfiguration};
