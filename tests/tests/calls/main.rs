//! Calls of running servers, and what comes of them: one program, so that the server is linked once.

mod adaptation;
mod answers;
mod client;
mod deadlines;
mod decisions;
mod discovery;
mod feature_set;
mod fusion;
mod json_calls;
mod leases;
mod limits;
mod measurements;
mod metrics;
mod model_life;
mod naive_reference;
mod refusals;
mod streaming;
mod suggest;
mod suggest_combinations;
mod unusual_graphs;
