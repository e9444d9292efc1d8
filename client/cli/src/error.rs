//! The error of a failed command, its exit code, and how it is printed.

use std::{collections::BTreeMap, error::Error, fmt::Display, io, path::Path, process::ExitCode};

use hlorank_client::{ClientError, Refusal};
use hlorank_graph::{ConfigurationError, FileError, without_error_numbers};
use serde::Serialize;
use tonic::Code;

use super::output::{ERROR, Format, WARNING, styled};

/// The error of a failed command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// A file of graphs cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// An argument, or a file that it names, is wrong. The text says which, and what to do.
    #[error("{0}")]
    Input(String),
    /// A file or a folder cannot be written.
    #[error("{path}: {source}")]
    WrittenFile {
        /// Path of the file.
        path: String,
        /// Cause.
        source: io::Error,
    },
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
    /// Some of several parts failed, and the report names each.
    #[error("{problem}")]
    Incomplete {
        /// How many failed, and why the first did.
        problem: String,
        /// The first failure.
        source: Box<CommandError>,
    },
    /// Standard output cannot be written.
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    /// A worker was told to stop.
    #[error("stopped; what was leased is given back")]
    Stopped,
}

/// The exit code of a failed command. It says who can resolve the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Exit {
    /// Any other failure, for example a fault of the server or of this program.
    Failed = 1,
    /// The input is wrong: arguments (clap's own code), a file, a request. The caller can correct it.
    WrongInput = 2,
    /// The server rejects the call: missing permission, an unknown model, a limit or its state. The operator of the
    /// server can change it.
    Refused = 3,
    /// There is no answer at the moment: the server is unreachable, overloaded or too slow. A retry may help.
    NoAnswer = 4,
}

/// The table of `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  any other failure: a fault of the server or of hlorank
  2  wrong input: arguments, a file, a configuration
  3  rejected by the server: missing permission, unknown model or version, a limit, its state
  4  no answer: the server is unreachable, overloaded or too slow; a retry may help";

/// A failure as JSON. All fields but the first two come from the answer of the server.
#[derive(Debug, Serialize)]
struct PrintedError<'a> {
    message: String,
    exit_code: u8,
    /// The gRPC status code, as in `google.rpc.Status`.
    code: Option<i32>,
    reason: Option<&'a str>,
    fields: Vec<&'a str>,
    retry_after_seconds: Option<f64>,
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

    /// An error of writing a file, or of making its folder.
    pub(crate) fn written(path: &Path, source: io::Error) -> Self {
        let path = path.display().to_string();
        Self::WrittenFile { path, source }
    }

    /// Returns the error of an input with a problem.
    pub(crate) fn input(input: impl Display, problem: impl Display) -> Self {
        Self::Input(format!("{input}: {problem}"))
    }

    /// Returns the error of configurations that do not fit the graph of a file.
    pub(crate) fn configuration(path: &Path, source: &ConfigurationError) -> Self {
        let problem = format_args!(
            "{source} (`hlorank graph inspect --nodes` lists the nodes that a layout sets)"
        );
        Self::input(path.display(), problem)
    }

    /// Returns the exit code of the command.
    pub(crate) fn exit(&self) -> ExitCode {
        (self.kind() as u8).into()
    }

    fn kind(&self) -> Exit {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => match error {
                ClientError::Connect { .. } | ClientError::Deadline { .. } => Exit::NoAnswer,
                ClientError::Refused(refusal) => refusal.as_ref().into(),
                ClientError::Answer { .. } => Exit::Failed,
                // The address, the certificates or the size of the input must be corrected.
                _ => Exit::WrongInput,
            },
            Self::Incomplete { source, .. } => source.kind(),
            // The work is done, and only its result cannot be written.
            Self::Output(_) | Self::WrittenFile { .. } | Self::Stopped => Exit::Failed,
            // All others are about the arguments or a file that they name.
            _ => Exit::WrongInput,
        }
    }

    /// Returns whether the server does not answer at the moment.
    pub(crate) fn is_no_answer(&self) -> bool {
        self.kind() == Exit::NoAnswer
    }

    /// Returns the answer of the server, if it is an error.
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Graph { source: error, .. } | Self::Client(error) => error.refusal(),
            Self::Incomplete { source, .. } => source.refusal(),
            _ => None,
        }
    }

    /// Returns whether the reader of the output, such as `head`, has closed the pipe.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<&Refusal> for Exit {
    fn from(refusal: &Refusal) -> Self {
        // The delay comes before the code: RESOURCE_EXHAUSTED with a delay is overload, which
        // passes, and without one it is the limit of a message, which only the operator can raise.
        if refusal.retry_after().is_some() {
            return Self::NoAnswer;
        }
        match refusal.code() {
            Code::InvalidArgument | Code::OutOfRange => Self::WrongInput,
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Self::NoAnswer,
            Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Self::Failed,
            _ => Self::Refused,
        }
    }
}

impl Format {
    /// Prints the error of a failed command on standard error.
    pub(crate) fn print_failure(self, error: &CommandError) {
        if self == Self::Text {
            return anstream::eprintln!("{} {}", styled(ERROR, "error:"), describe(error));
        }
        let refusal = error.refusal();
        let delay = refusal.and_then(Refusal::retry_after);
        let failure = PrintedError {
            message: describe(error),
            exit_code: error.kind() as u8,
            code: refusal.map(|refusal| refusal.code().into()),
            reason: refusal.and_then(Refusal::reason),
            fields: refusal.into_iter().flat_map(Refusal::fields).collect(),
            retry_after_seconds: delay.map(|delay| delay.as_secs_f64()),
        };
        // One line for each document, so that a program can read standard error line by line.
        let json = serde_json::to_string(&BTreeMap::from([("error", failure)]));
        eprintln!("{}", json.expect("strings and numbers are valid JSON"));
    }

    /// Prints a warning on standard error. The command goes on.
    pub(crate) fn print_warning(self, message: &str) {
        match self {
            Self::Text => anstream::eprintln!("{} {message}", styled(WARNING, "warning:")),
            Self::Json => eprintln!("{}", serde_json::json!({ "warning": message })),
        }
    }
}

/// Returns the message of an error and of its causes. A cause that an earlier message contains is left out.
pub(crate) fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Most errors of this program name their cause in their own message.
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    without_error_numbers(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Layer(&'static str, #[source] Option<Box<Layer>>);

    #[test]
    fn a_cause_is_printed_once() {
        let error = Layer("no answer: refused", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
        let error = Layer("no answer", Some(Box::new(Layer("refused", None))));
        assert_eq!(describe(&error), "no answer: refused");
    }
}
