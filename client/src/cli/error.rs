use std::{error::Error, io, path::Path};

use hlorank_client::ClientError;
use hlorank_graph::{ConfigurationError, FileError};

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

    /// Whether the reader of a pipe, such as `head`, has seen enough.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// An error and its causes, without those that a message before them tells already.
pub(crate) fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_cause_is_told_once() {
        let error = Layer("no answer: refused", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
        let error = Layer("no answer", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
    }
}
