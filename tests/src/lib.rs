//! Whole-system tests of hlorank, and what they share. Each file of `tests/` is one behaviour.

mod data;
mod model;
pub mod module;
mod naive;
mod npz;
mod server;

pub use data::{HLO_FIXTURES, fixture, modules, repository, shared};
pub use model::load_model;
pub use naive::score_naively;
pub use npz::Arrays;
pub use server::TestServer;
