use super::{ConfigurationError, GraphError};

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// None of the formats.
    #[error(
        "{path}: not HLO text, a HloModuleProto, HloProto, ModuleTuningData, TuningData, or TpuGraphs npz file"
    )]
    UnknownFormat {
        /// The file.
        path: String,
    },
    /// An array is missing or of the wrong shape or type.
    #[error("{path}: array `{array}`: {detail}")]
    Array {
        /// The file.
        path: String,
        /// The array.
        array: String,
        /// What is wrong.
        detail: String,
    },
    /// A graph that was refused.
    #[error("{path}: module {module}: {source}")]
    Graph {
        /// The file.
        path: String,
        /// Which module of it, from 0.
        module: usize,
        /// Why.
        source: GraphError,
    },
    /// Configurations that were refused.
    #[error("{path}: module {module}: {source}")]
    Configuration {
        /// The file.
        path: String,
        /// Which module of it, from 0.
        module: usize,
        /// Why.
        source: ConfigurationError,
    },
    /// A module number past the end.
    #[error("{path}: module {module} was asked for, the file has {modules} (0 to {})", modules.saturating_sub(1))]
    NoSuchModule {
        /// The file.
        path: String,
        /// What was asked for.
        module: usize,
        /// How many there are.
        modules: usize,
    },
}
