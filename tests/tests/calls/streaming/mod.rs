//! A stream of batches has the scores and the ranking of one call with all configurations.

pub(crate) mod call;
mod cancel;
mod flow;
mod scores;
