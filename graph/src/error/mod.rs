//! Everything that can be wrong with what is read.

mod configuration;
mod file;
mod graph;
mod text;

pub use configuration::ConfigurationError;
pub use file::FileError;
pub use graph::GraphError;
pub use text::TextError;
