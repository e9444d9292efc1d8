use super::{ConfigurationError, GraphError, UnreadContent};

/// The error of a file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// An error of the operating system.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error.
        source: std::io::Error,
    },
    /// A file in none of the supported formats.
    #[error("{path}: {found}")]
    UnknownFormat {
        /// The file.
        path: String,
        /// What it contains.
        found: UnreadContent,
    },
    /// A folder or a device in place of a file.
    #[error(
        "{path}: this is {found}; pass a file, such as `*.before_optimizations.txt` or `*.hlo.pb` of a dump"
    )]
    NoFile {
        /// The path.
        path: String,
        /// What is there.
        found: &'static str,
    },
    /// A compressed file that is broken.
    #[error("{path}: this is compressed, and its data is broken or cut off: {source}")]
    Compressed {
        /// The file.
        path: String,
        /// The error.
        source: std::io::Error,
    },
    /// A file that is too large once it is decompressed.
    #[error(
        "{path}: this is compressed, and holds more than {limit} bytes, the limit for its size; decompress it, and pass the file inside"
    )]
    UnpackedTooLarge {
        /// The file.
        path: String,
        /// Maximum number of bytes.
        limit: u64,
    },
    /// The arrays of a compressed file are too large.
    #[error(
        "{path}: its arrays take {found} bytes when they are decompressed, at most {limit} are allowed"
    )]
    TooLarge {
        /// The file.
        path: String,
        /// Bytes that the file claims.
        found: u64,
        /// Maximum number of bytes.
        limit: u64,
    },
    /// An array that is missing or has the wrong shape or type.
    #[error("{path}: array `{array}`: {detail}")]
    Array {
        /// The file.
        path: String,
        /// The array.
        array: String,
        /// What is wrong.
        detail: String,
    },
    /// A graph that is refused.
    #[error("{path}: module {module}: {source}")]
    Graph {
        /// The file.
        path: String,
        /// Number of the module in the file, from 0.
        module: usize,
        /// The error.
        source: GraphError,
    },
    /// Configurations that are refused.
    #[error("{path}: module {module}: {source}")]
    Configuration {
        /// The file.
        path: String,
        /// Number of the module in the file, from 0.
        module: usize,
        /// The error.
        source: ConfigurationError,
    },
    /// A text of more modules than are read of one file.
    #[error(
        "{path}: this text has more than {limit} HLO modules, the limit for one file; split it into several files"
    )]
    TooManyModules {
        /// The file.
        path: String,
        /// Maximum number of modules.
        limit: usize,
    },
    /// A module number that the file does not have.
    #[error("{path}: the file has no module {module}; it has {modules} (0 to {})", modules.saturating_sub(1))]
    NoSuchModule {
        /// The file.
        path: String,
        /// The requested module.
        module: usize,
        /// Number of modules in the file.
        modules: usize,
    },
}
