//! Tile configurations: bounds of a kernel's window, output and input.

mod batch;
mod canonical;
mod check;
mod describe;
mod encoded;
mod facts;
mod forms;
mod rows;
mod tile_configuration;
mod wire;

pub use batch::TileBatch;
pub use tile_configuration::{TILE_FEATURES, Tile, TileConfiguration};
