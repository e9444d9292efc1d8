//! The errors of reading graphs, configurations and files.

mod configuration;
mod file;
mod graph;
mod text;

pub use configuration::ConfigurationError;
pub use file::FileError;
pub use graph::{FusionError, GraphError, UnreadContent};
pub use text::{ModuleFault, TextError};
