use std::{io, path::Path};

use hlorank_client::{ClientError, ParseTokenError, Refusal, trace::TraceError};
use hlorank_graph::{ConfigurationError, FileError};

use super::exit::Exit;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A file of graphs.
    #[error(transparent)]
    File(#[from] FileError),
    /// A command for one graph, a file of several.
    #[error("{path}: holds {modules} graphs; choose one with --module (0 to {})", modules.saturating_sub(1))]
    SeveralModules {
        /// The file.
        path: String,
        /// How many graphs it holds.
        modules: usize,
    },
    /// A file of configurations that is not readable.
    #[error("{path}: {source}")]
    ConfigurationFile {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A file of configurations that is not the JSON that is read.
    #[error("{path}: {source}")]
    ConfigurationJson {
        /// The file.
        path: String,
        /// Why, and where.
        source: serde_json::Error,
    },
    /// A file of certificates, a key or a token that is not readable.
    #[error("{path}: {source}")]
    CredentialFile {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// What is no token.
    #[error("{from}: {source}")]
    Token {
        /// The file, or the variable.
        from: String,
        /// Why.
        source: ParseTokenError,
    },
    /// Configurations that do not fit the graph.
    #[error("{path}: {source} (`hlorank graph inspect --nodes` lists the nodes that a layout sets)")]
    Configuration {
        /// The file.
        path: String,
        /// Why.
        source: ConfigurationError,
    },
    /// Nothing to rank.
    #[error("{path}: holds no configurations; give them with --configs")]
    NoConfigurations {
        /// The file of the graph.
        path: String,
    },
    /// Nothing to draw configurations from.
    #[error(
        "{path}: holds no configurations, and not what layouts of its nodes could be; give an HLO module or text"
    )]
    NothingToDraw {
        /// The file of the graph.
        path: String,
    },
    /// Weights that are not one a file.
    #[error("--weights has {weights} numbers for {files} files")]
    Weights {
        /// How many files there are.
        files: usize,
        /// How many weights.
        weights: usize,
    },
    /// A recorded trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A trace without calls.
    #[error("{path}: holds no calls")]
    NoCalls {
        /// The file of the trace.
        path: String,
    },
    /// A plot that cannot be drawn or written.
    #[error("{path}: {source}")]
    PlotFile {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Nothing to compare with.
    #[error("none of the files holds measured run times")]
    NothingMeasured,
    /// A call about a graph.
    #[error("{path}: module {module}: {source}")]
    Graph {
        /// The file.
        path: String,
        /// Which graph of it, from 0.
        module: usize,
        /// Why.
        source: ClientError,
    },
    /// The server.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Standard output.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
}

impl CommandError {
    /// A call about a graph of a file failed.
    pub(crate) fn graph(path: &Path, module: usize, source: ClientError) -> Self {
        Self::Graph { path: path.display().to_string(), module, source }
    }

    /// What the command exits with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => error.into(),
            Self::Output(_) | Self::PlotFile { .. } => Exit::Failed,
            _ => Exit::WrongInput,
        }
    }

    /// The server's answer, where there was one.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => error.refusal(),
            _ => None,
        }
    }

    /// Whether the reader of a pipe, such as `head`, has seen enough.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}
