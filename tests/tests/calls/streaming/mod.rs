//! A stream of batches has the scores and the ranking of one call with all configurations.

mod call;
mod cancel;
mod flow;
mod scores;
