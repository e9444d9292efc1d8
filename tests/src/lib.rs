//! Whole-system tests of hlorank, and what they share. Each file of `tests/` is one behaviour.

mod data;
pub mod module;
mod npz;
mod server;

pub use data::{HLO_FIXTURES, fixture, modules, repository, shared};
pub use npz::Arrays;
pub use server::TestServer;
