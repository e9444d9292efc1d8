//! The command line `hlorank`, most of it against a running server.

mod completions;
mod decisions;
mod eval;
mod failures;
mod feature_set;
mod given_configurations;
mod graph_files;
mod models;
#[cfg(unix)]
mod output_files;
mod rank;
mod replicas;
mod report;
mod running;
mod security;
mod suggest;
mod terminal;
mod worker;
