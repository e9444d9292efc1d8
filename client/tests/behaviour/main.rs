//! The library and the command line against a real server, file by behaviour.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test fails")]

mod bench;
mod command_line;
mod completions;
mod eval;
mod failures;
mod given_configurations;
mod graph_files;
mod graph_hash;
mod measured_file;
mod models;
mod proxy;
mod rank;
mod security;
mod table;
mod terminal;
