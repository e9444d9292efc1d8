use std::{error::Error, fmt, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// Why a call gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No connection, or one that broke before the answer was there.
    #[error("no connection to {endpoint}")]
    Connect {
        /// The server's address, or those of all that were given.
        endpoint: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A client of no servers.
    #[error("no endpoint was given; name one, such as http://127.0.0.1:7070")]
    NoEndpoint,
    /// A scheme that is neither `http` nor `https`.
    #[error(
        "cannot connect to {endpoint}: only http:// and https:// are spoken, as in http://127.0.0.1:7070"
    )]
    Scheme {
        /// The server's address.
        endpoint: String,
    },
    /// Authorities or an identity, for an address that is connected to without TLS.
    #[error("certificates were given, and {endpoint} means no TLS; TLS is spoken at https://")]
    NoTls {
        /// The server's address.
        endpoint: String,
    },
    /// TLS that cannot begin: authorities or an identity that are no PEM, a key that is not that of its certificate, or
    /// a system that trusts no authorities where none were given.
    #[error("cannot speak TLS to {endpoint}: check the authorities, the certificate and its key")]
    Tls {
        /// The server's address.
        endpoint: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The call, or the stream, took longer than it may.
    #[error("{endpoint} did not answer within {allowed:?} (DEADLINE_EXCEEDED)")]
    Deadline {
        /// The server that was asked last.
        endpoint: String,
        /// How long the call was allowed to take, retries included.
        allowed: Duration,
    },
    /// The server, or the way to it, answered with an error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A batch that does not fit a message. The stream goes on.
    #[error("the batch takes {found} bytes, at most {limit} go in one message; send it as several batches")]
    BatchTooLong {
        /// Bytes of the batch.
        found: usize,
        /// Bytes allowed: [`Connection::message_bytes`](crate::Connection::message_bytes).
        limit: usize,
    },
    /// A graph, or a graph and candidates, that do not fit a message.
    #[error(
        "the request takes {found} bytes, at most {limit} go in one message; raise the limit here and at the \
         server, or send the candidates in a stream"
    )]
    RequestTooLong {
        /// Bytes of the request.
        found: usize,
        /// Bytes allowed: [`Connection::message_bytes`](crate::Connection::message_bytes).
        limit: usize,
    },
    /// An answer that breaks the contract.
    #[error("the server's answer cannot be used: {0}")]
    Answer(&'static str),
}

/// An error that a server answered with. Printed as its message, then the field, status code and reason.
#[derive(Debug)]
pub struct Refusal {
    status: Status,
    details: ErrorDetails,
}

/// The reason of a server that does not hold the graph of a hash.
const GRAPH_NOT_CACHED: &str = "GRAPH_NOT_CACHED";

impl Refusal {
    /// The gRPC status code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.status.code()
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn message(&self) -> &str {
        self.status.message()
    }

    /// What is wrong, for programs: `UPPER_SNAKE_CASE`, stable.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.details.error_info().map(|info| info.reason.as_str())
    }

    /// The fields of the request that are wrong, where it is about fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let violations = self.details.bad_request().into_iter().flat_map(|details| &details.field_violations);
        violations.map(|violation| violation.field.as_str())
    }

    /// How long to wait before trying again, where that helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.details.retry_info().and_then(|retry| retry.retry_delay)
    }
}

impl ClientError {
    /// The server's answer, where there was one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The gRPC status code: of the answer, `UNAVAILABLE` where there was no connection, `DEADLINE_EXCEEDED` where
    /// the time was over. `None` for what was never sent, and for an answer that breaks the contract.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Connect { .. } => Some(Code::Unavailable),
            Self::Deadline { .. } => Some(Code::DeadlineExceeded),
            Self::Refused(refusal) => Some(refusal.code()),
            _ => None,
        }
    }

    /// [`code`](Self::code) as gRPC writes it, such as `RESOURCE_EXHAUSTED`.
    #[must_use]
    pub fn code_name(&self) -> Option<String> {
        self.code().map(code_name)
    }

    /// No connection to this address.
    pub(crate) fn no_connection(endpoint: &str, source: tonic::transport::Error) -> Self {
        Self::Connect { endpoint: endpoint.to_owned(), source: source.into() }
    }

    /// The error of a status, which a server sent, or which was made here of a connection's failure.
    pub(crate) fn of_call(endpoint: &str, status: Status) -> Self {
        if status.source().is_none() {
            return status.into();
        }
        Self::Connect { endpoint: endpoint.to_owned(), source: Box::new(Lost(status)) }
    }

    /// Whether the server wants the graph itself, since it does not hold the one of the hash.
    pub(crate) fn is_graph_not_cached(&self) -> bool {
        self.refusal().is_some_and(|refusal| {
            refusal.code() == Code::FailedPrecondition && refusal.reason() == Some(GRAPH_NOT_CACHED)
        })
    }
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(Refusal { details: status.get_error_details(), status }))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = code_name(self.code());
        match self.message() {
            "" => write!(formatter, "{}", self.code().description())?,
            message => write!(formatter, "{message}")?,
        }
        let fields = self.fields().filter(|field| !field.is_empty()).map(|field| format!("field `{field}`"));
        let notes = fields.chain([code]).chain(self.reason().map(str::to_owned));
        let retry = self.retry_after().map(|delay| format!("try again in {delay:?}"));
        write!(formatter, " ({})", notes.chain(retry).collect::<Vec<_>>().join(", "))
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.status.source()
    }
}

/// The cause of a status, which owns it.
#[derive(Debug)]
struct Lost(Status);

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.source() {
            Some(cause) => write!(formatter, "{cause}"),
            None => formatter.write_str(self.0.message()),
        }
    }
}

impl Error for Lost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()?.source()
    }
}

/// The code as gRPC writes it: `FAILED_PRECONDITION` for `FailedPrecondition`.
fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn not_cached() -> ClientError {
        let mut details = ErrorDetails::new();
        details
            .set_error_info(GRAPH_NOT_CACHED, "hlorank", HashMap::new())
            .add_bad_request_violation("graph.graph_hash", "unknown");
        let message = "no graph of this hash is cached; send the graph itself";
        Status::with_error_details(Code::FailedPrecondition, message, details).into()
    }

    #[test]
    fn a_refusal_carries_code_message_and_reason() {
        let error = not_cached();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.code(), Code::FailedPrecondition);
        assert_eq!(refusal.reason(), Some("GRAPH_NOT_CACHED"));
        assert!(error.is_graph_not_cached());
        assert_eq!(
            error.to_string(),
            "no graph of this hash is cached; send the graph itself \
             (field `graph.graph_hash`, FAILED_PRECONDITION, GRAPH_NOT_CACHED)"
        );
    }

    #[test]
    fn a_status_without_details_is_readable() {
        let error = ClientError::from(Status::new(Code::Unavailable, ""));
        assert_eq!(error.to_string(), "The service is currently unavailable (UNAVAILABLE)");
        assert!(!error.is_graph_not_cached());
    }
}
