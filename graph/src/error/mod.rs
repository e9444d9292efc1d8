//! The errors of reading graphs, configurations and files.

mod configuration;
mod file;
mod fusion;
mod graph;
mod module;
mod text;

pub use configuration::ConfigurationError;
pub use file::FileError;
pub use fusion::FusionError;
pub use graph::GraphError;
pub use module::ModuleFault;
pub use text::TextError;
