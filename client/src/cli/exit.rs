use std::process::ExitCode;

use hlorank_client::{ClientError, Refusal};
use tonic::Code;

/// The exit code of a failed command. It says who can resolve the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
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

impl From<&ClientError> for Exit {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Connect { .. } | ClientError::Deadline { .. } => Self::NoAnswer,
            // The address, the certificates or the size of the input must be corrected.
            ClientError::NoEndpoint
            | ClientError::NotGrpc { .. }
            | ClientError::Scheme { .. }
            | ClientError::NoTls { .. }
            | ClientError::Tls { .. }
            | ClientError::BatchTooLong { .. }
            | ClientError::RequestTooLong { .. } => Self::WrongInput,
            ClientError::Refused(refusal) => refusal.as_ref().into(),
            ClientError::Answer { .. } => Self::Failed,
        }
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
