//! What a call asks, what was scored for it, and what follows from both.
//!
//! A [`Query`] is what was asked: the graph, the model that answers, and what was learned of measurements. [`Scored`] is what was scored
//! of its batches: one of a unary call, many of a stream, and a prefix of one in a partial ranking. A [`Ranking`] and an
//! [`Assessment`] are functions of the two. `handlers` read messages and write answers around these values; `engine` evaluates
//! batches.

mod confidence;
mod open;
mod partial;
mod query;
mod rank;
mod scored;
mod select;

pub(crate) use confidence::Assessment;
pub(crate) use open::Queries;
pub(crate) use query::{Query, Scoring};
pub(crate) use rank::Ranking;
pub(crate) use scored::{Scored, answer_bytes};
pub(crate) use select::{ModelSelection, SelectedModel, WantedModel};
