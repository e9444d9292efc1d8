//! Scores configurations: every distinct thing is evaluated once.
//!
//! [`Engine::score`] is the only way to scores. Within a call, equal configurations are evaluated once, and so are equal
//! rows (pairs of segment and local configuration). Across calls, the embedding of a row is evaluated once for as long
//! as it is in the cache. Work is cut into blocks that go to the compute pool one by one, so that calls take turns, and
//! dropping the future drops the work that has not started.
//!
//! Each kind of model is evaluated by one folder: `segment`, `whole_graph`.

mod backlog;
mod error;
mod evaluate;
mod ranking;
mod resources;
mod segment;
mod terms;
mod whole_graph;

pub use error::EngineError;
pub use evaluate::Engine;
pub use ranking::rank;
pub use segment::CacheBytes;
pub use terms::{BatchPart, Terms};
