//! What a call asks, what was scored for it, and what follows from both, as three values that are whole when they are made.
//!
//! * A [`Query`] is what was asked: the graph, the model that answers, and what was learned of measurements. [`Queries`] open it.
//! * [`ScoredCall`] is what was scored of its batches: one of a unary call, many of a stream, and a prefix of one in a partial ranking.
//! * A [`Ranking`], with an [`Assessment`] of how far it can be trusted, is a function of the two.
//!
//! A handler therefore opens, scores and answers. Streams score several times, suggestions score what they choose from, and an
//! explanation evaluates the first of a ranking again; none of them changes a value that another has made. Calls with
//! measurements take the same way: a query that learned has a lesson, through which its [`Evaluator`](crate::learning::Evaluator)
//! predicts. `handlers` read messages and write answers around these values; `engine` evaluates batches.

mod partial;
mod query;
mod ranking;
mod scored;
mod select;

pub(crate) use query::{Queries, Query, ReadBatch, Scoring};
pub(crate) use ranking::{Assessment, Ranking};
pub(crate) use scored::{ScoredCall, answer_bytes};
pub(crate) use select::{ModelSelection, WantedModel};
