use std::{io, path::Path};

use hlorank_client::{ClientError, ParseTokenError, Refusal, trace::TraceError};
use hlorank_graph::{ConfigurationError, FileError};

use super::{exit::Exit, table_error::TableError};

/// The error of a failed command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A file of graphs cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The command takes one graph, but the file contains several.
    #[error("{path}: contains {modules} graphs; select one with --module (0 to {})", modules.saturating_sub(1))]
    SeveralModules {
        /// Path of the file.
        path: String,
        /// Number of graphs in the file.
        modules: usize,
    },
    /// A file of configurations cannot be read.
    #[error("{path}: {source}")]
    ConfigurationFile {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// A file of configurations is not JSON of the expected form.
    #[error("{path}: {source}")]
    ConfigurationJson {
        /// Path of the file.
        path: String,
        /// Cause and position.
        source: serde_json::Error,
    },
    /// A file has broken measurements of an export.
    #[error("{path}: its exported measurements cannot be read: {source}")]
    Exported {
        /// Path of the file.
        path: String,
        /// Cause.
        source: prost::DecodeError,
    },
    /// An exported file lacks its graph.
    #[error(
        "{path}: has no graph, because the server that it came from kept none; report these measurements with their graph"
    )]
    NoGraph {
        /// Path of the file.
        path: String,
    },
    /// A file of measurements names no target.
    #[error(
        "{path}: names no target; pass --target with the hardware, compiler and flags that were measured"
    )]
    NoTarget {
        /// Path of the file.
        path: String,
    },
    /// A table of configurations cannot be used.
    #[error("{path}: {source}")]
    Table {
        /// Path of the file.
        path: String,
        /// Cause.
        source: TableError,
    },
    /// A file of certificates, a key or a token cannot be read.
    #[error("{path}: {source}")]
    CredentialFile {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// The token is invalid.
    #[error("{from}: {source}")]
    Token {
        /// The file or the environment variable.
        from: String,
        /// Cause.
        source: ParseTokenError,
    },
    /// The configurations do not fit the graph.
    #[error(
        "{path}: {source} (`hlorank graph inspect --nodes` lists the nodes that a layout sets)"
    )]
    Configuration {
        /// Path of the file.
        path: String,
        /// Cause.
        source: ConfigurationError,
    },
    /// There are no tiles to rank, and none can be drawn, because only the compiler knows the tiles of a kernel.
    #[error(
        "{path}: contains no tiles, and tiles cannot be drawn, because only the compiler knows those of a kernel; pass \
         some with --configs"
    )]
    NoTiles {
        /// File of the graph.
        path: String,
    },
    /// A graph of a feature set without configurations.
    #[error(
        "{path}: contains no configurations, and columns of a feature set cannot be drawn; use --configs FILE"
    )]
    NoNodeFeatures {
        /// File of the graph.
        path: String,
    },
    /// The graph has only one layout configuration.
    #[error("{path}: contains no convolution, dot or reshape, so there are no layouts to rank")]
    NothingConfigurable {
        /// File of the graph.
        path: String,
    },
    /// There is nothing to draw configurations from.
    #[error(
        "{path}: contains neither configurations nor the tensor ranks from which layouts are drawn; pass an HLO \
         module or HLO text, or configurations with --configs"
    )]
    NothingToDraw {
        /// File of the graph.
        path: String,
    },
    /// The parts of a configuration are not known.
    #[error(
        "{path}: is a graph of a feature set, whose configurations have no parts that could be explained"
    )]
    NotExplained {
        /// File of the graph.
        path: String,
    },
    /// The number of weights differs from the number of files.
    #[error("--weights has {weights} numbers for {files} files")]
    Weights {
        /// Number of files.
        files: usize,
        /// Number of weights.
        weights: usize,
    },
    /// A trace cannot be read or written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace is empty.
    #[error("{path}: contains no calls")]
    NoCalls {
        /// File of the trace.
        path: String,
    },
    /// A file or a folder cannot be written.
    #[error("{path}: {source}")]
    WrittenFile {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
    /// There is nothing to compare rankings with.
    #[error("none of the files contains measured run times")]
    NothingMeasured,
    /// A call about a graph failed.
    #[error("{path}: module {module}: {source}")]
    Graph {
        /// Path of the file.
        path: String,
        /// Number of the graph in the file, from 0.
        module: usize,
        /// Cause.
        source: ClientError,
    },
    /// A call failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// Returns the error of a call about a graph of a file.
    pub(crate) fn graph(path: &Path, module: usize, source: ClientError) -> Self {
        Self::Graph {
            path: path.display().to_string(),
            module,
            source,
        }
    }

    /// Returns the error of configurations that do not fit the graph of a file.
    pub(crate) fn configuration(path: &Path, source: ConfigurationError) -> Self {
        Self::Configuration {
            path: path.display().to_string(),
            source,
        }
    }

    /// Returns the exit code of the command.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => error.into(),
            // The work is done, and only its result cannot be written.
            Self::Output(_) | Self::WrittenFile { .. } => Exit::Failed,
            // All others are about the arguments or a file that they name.
            _ => Exit::WrongInput,
        }
    }

    /// Returns the error of the server, if it answered.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => error.refusal(),
            _ => None,
        }
    }

    /// Returns whether the reader of the output, such as `head`, has closed the pipe.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
