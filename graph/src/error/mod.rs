//! The errors of reading graphs, configurations and files.

mod configuration;
mod file;
mod found;
mod fusion;
mod graph;
mod module;
mod text;

pub use configuration::ConfigurationError;
pub use file::FileError;
pub use found::Found;
pub use fusion::FusionError;
pub use graph::GraphError;
pub use module::ModuleFault;
pub use text::TextError;
