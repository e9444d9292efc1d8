//! The command line `hlorank`, most of it against a running server.

mod bench;
mod command_line;
mod completions;
mod drawn_layouts;
mod eval;
mod explain;
mod failures;
mod feature_set;
mod given_configurations;
mod graph_files;
mod measured_file;
mod models;
#[cfg(unix)]
mod output_files;
mod proxy;
mod rank;
mod security;
mod suggest;
mod table;
mod terminal;
