//! Tile configurations: bounds of a kernel's window, output and input.

mod batch;
mod kind;
pub(super) mod wire;

pub use batch::{TILE_FEATURES, Tile, TileBatch, TileConfiguration};
