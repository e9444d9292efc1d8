use std::process::ExitCode;

use hlorank_client::{ClientError, Refusal};
use tonic::Code;

/// What a failed command exits with: who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Anything else: a fault of the server or of this program.
    Failed = 1,
    /// What was given is wrong: arguments (clap's own code), a file, a request. Whoever gave it can.
    WrongInput = 2,
    /// The server refuses: it does not let this caller in, lacks the model, has a limit, is in another state. Its
    /// operator can.
    Refused = 3,
    /// No answer for now: not reachable, overloaded or too slow. Time can.
    NoAnswer = 4,
}

/// The table of `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed otherwise: a fault of the server or of hlorank
  2  what was given is wrong: arguments, a file, a configuration
  3  the server refuses: no right to call, no such model or version, a limit of it, its state
  4  no answer for now: not reachable, overloaded or too slow; trying again may help";

impl From<&ClientError> for Exit {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Connect { .. } | ClientError::Deadline { .. } => Self::NoAnswer,
            ClientError::NoEndpoint
            | ClientError::Scheme { .. }
            | ClientError::NoTls { .. }
            | ClientError::Tls { .. }
            | ClientError::BatchTooLong { .. }
            | ClientError::RequestTooLong { .. } => Self::WrongInput,
            ClientError::Refused(refusal) => refusal.as_ref().into(),
            ClientError::Answer(_) => Self::Failed,
        }
    }
}

impl From<&Refusal> for Exit {
    fn from(refusal: &Refusal) -> Self {
        if refusal.retry_after().is_some() {
            return Self::NoAnswer;
        }
        match refusal.code() {
            Code::InvalidArgument | Code::OutOfRange => Self::WrongInput,
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Self::NoAnswer,
            Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Self::Failed,
            Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::Unimplemented => Self::Refused,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
