//! A session scores the batches of one call, one after the other, and ranks what it scored.
//!
//! It holds the call's model and graph, what the call learned, and the scores until now. A unary call is one batch, a stream
//! is many, and a partial ranking is a prefix of one. `handlers` read messages and write answers around a session; `engine`
//! evaluates its batches.

mod confidence;
mod explain;
mod open;
mod partial;
mod rank;
mod score;
mod select;
mod state;

pub(crate) use confidence::Assessment;
pub(crate) use open::Sessions;
pub(crate) use rank::answer_bytes;
pub(crate) use score::ScoredBatch;
pub(crate) use select::{ModelSelection, SelectedModel, WantedModel};
pub(crate) use state::Session;
