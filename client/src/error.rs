use std::{error::Error, fmt, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{ConnectionFailure, InvalidAnswer, TlsSettingsError};

/// The error of a failed call.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection could not be opened, or broke before the answer arrived.
    #[error("no connection to {endpoint}")]
    Connect {
        /// Address of the server, or the addresses of all servers.
        endpoint: String,
        /// Cause.
        source: ConnectionFailure,
    },
    /// The server speaks TLS, and the address does not.
    #[error("{endpoint} speaks TLS; use an address at https://")]
    SpeaksTls {
        /// Address that was called.
        endpoint: String,
    },
    /// The address answers, but not as a gRPC server does.
    #[error(
        "{endpoint} does not speak gRPC: use the address of the server's gRPC listener (its setting --listen, by \
         default port 7070), not that of its metrics (--metrics-listen, by default port 7071)"
    )]
    NotGrpc {
        /// Address that was called.
        endpoint: String,
    },
    /// The list of servers is empty.
    #[error("no endpoint was given; name one, such as http://127.0.0.1:7070")]
    NoEndpoint,
    /// A text is no address of a server.
    #[error(transparent)]
    Address(#[from] ParseAddressError),
    /// Authorities or an identity were given for an address without TLS.
    #[error("certificates were given, but {endpoint} does not use TLS; use an address at https://")]
    NoTls {
        /// Address of the server.
        endpoint: String,
    },
    /// The TLS settings cannot be used.
    #[error("cannot use TLS with {endpoint}")]
    Tls {
        /// Address of the server.
        endpoint: String,
        /// Cause.
        source: TlsSettingsError,
    },
    /// The call or the stream exceeded its deadline.
    #[error("{endpoint} did not answer within {allowed:?} (DEADLINE_EXCEEDED)")]
    Deadline {
        /// The server that was called last.
        endpoint: String,
        /// Maximum time of the call, retries included.
        allowed: Duration,
    },
    /// The server, or a proxy in front of it, answered with an error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A batch exceeds the maximum message size. The stream stays open.
    #[error("the batch has {found} bytes, but a message may have at most {limit}; split the batch")]
    BatchTooLong {
        /// Size of the batch in bytes.
        found: usize,
        /// Maximum in bytes: [`Connection::message_bytes`](crate::Connection::message_bytes).
        limit: usize,
    },
    /// A request exceeds the maximum message size.
    #[error(
        "the request has {found} bytes, but a message may have at most {limit}; raise the limit of the client and \
         of the server, or send the configurations in a stream"
    )]
    RequestTooLong {
        /// Size of the request in bytes.
        found: usize,
        /// Maximum in bytes: [`Connection::message_bytes`](crate::Connection::message_bytes).
        limit: usize,
    },
    /// The answer exceeds the maximum message size of this client.
    #[error(
        "the answer of {endpoint} is longer than the {limit} bytes that this client takes; ask for less, for example with --top, or \
         raise `message_bytes`"
    )]
    AnswerTooLong {
        /// Address of the server.
        endpoint: String,
        /// Maximum in bytes: [`Connection::message_bytes`](crate::Connection::message_bytes).
        limit: String,
    },
    /// The answer violates the wire contract.
    #[error("invalid answer from the server at {endpoint}: {source}")]
    Answer {
        /// Address of the server.
        endpoint: String,
        /// Violation.
        source: InvalidAnswer,
    },
}

/// An error that a server answered with. `Display` prints its message, then the fields, status code and reason.
#[derive(Debug)]
pub struct Refusal {
    status: Status,
    details: ErrorDetails,
}

/// The reason if the server has no graph of the hash.
const GRAPH_NOT_CACHED: &str = "GRAPH_NOT_CACHED";

const UNKNOWN_BATCH: &str = "UNKNOWN_BATCH";

/// The error of a text that is no address of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot connect to {address}: {reason}, for example 127.0.0.1:7070 or https://ranker.example:7070"
)]
pub struct ParseAddressError {
    /// The text, without a password.
    pub(crate) address: String,
    pub(crate) reason: String,
}

impl Refusal {
    /// Returns the gRPC status code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.status.code()
    }

    /// Returns the message, for people.
    #[must_use]
    pub fn message(&self) -> &str {
        self.status.message()
    }

    /// Returns the reason, for programs: a stable name in `UPPER_SNAKE_CASE`.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.details.error_info().map(|info| info.reason.as_str())
    }

    /// Returns the invalid fields of the request, if the error names any.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        let violations = self
            .details
            .bad_request()
            .into_iter()
            .flat_map(|details| &details.field_violations);
        violations.map(|violation| violation.field.as_str())
    }

    /// Returns how long to wait before a retry, if the server asks for one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.details
            .retry_info()
            .and_then(|retry| retry.retry_delay)
    }
}

impl ClientError {
    /// Returns the error of the server, if there was an answer.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns the gRPC status code of the answer, or `UNAVAILABLE` without a connection, or `DEADLINE_EXCEEDED` after
    /// the deadline. Returns `None` if nothing was sent or if the answer is invalid.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Connect { .. } => Some(Code::Unavailable),
            Self::Deadline { .. } => Some(Code::DeadlineExceeded),
            Self::Refused(refusal) => Some(refusal.code()),
            _ => None,
        }
    }

    /// Returns the name of [`code`](Self::code), such as `RESOURCE_EXHAUSTED`.
    #[must_use]
    pub fn code_name(&self) -> Option<String> {
        self.code().map(code_name)
    }

    /// Returns the error of a failed connection to this address.
    pub(crate) fn no_connection(endpoint: &str, source: &(dyn Error + 'static)) -> Self {
        Self::Connect {
            endpoint: endpoint.to_owned(),
            source: ConnectionFailure::from_error(source),
        }
    }

    /// Converts a status that a server sent, or that tonic made because the connection failed.
    pub(crate) fn of_call(endpoint: &str, status: Status) -> Self {
        let endpoint = endpoint.to_owned();
        if is_of_another_protocol(&status) {
            return Self::NotGrpc { endpoint };
        }
        if let Some(limit) = limit_of_answer(&status) {
            return Self::AnswerTooLong {
                endpoint,
                limit: limit.to_owned(),
            };
        }
        // Only a status that tonic made has a cause: the server sends none.
        match status.source() {
            None => status.into(),
            Some(cause) => Self::no_connection(&endpoint, cause),
        }
    }

    /// Returns whether the connection ended for a reason that is not known.
    pub(crate) fn is_broken_connection(&self) -> bool {
        let broken = &ConnectionFailure::Broken;
        matches!(self, Self::Connect { source, .. } if source == broken)
    }

    /// Returns whether the server lacks the graph of the hash, so that the graph itself must be sent.
    pub(crate) fn is_graph_not_cached(&self) -> bool {
        self.lacks(GRAPH_NOT_CACHED)
    }

    /// Returns whether the server lacks the batch of the digest, so that the batch itself must be sent.
    pub(crate) fn is_unknown_batch(&self) -> bool {
        self.lacks(UNKNOWN_BATCH)
    }

    fn lacks(&self, reason: &str) -> bool {
        self.refusal().is_some_and(|refusal| {
            refusal.code() == Code::FailedPrecondition && refusal.reason() == Some(reason)
        })
    }
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(Refusal {
            details: status.get_error_details(),
            status,
        }))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            "" => write!(formatter, "{}", self.code().description())?,
            message => write!(formatter, "{message}")?,
        }
        let fields = self.fields().filter(|field| !field.is_empty());
        let mut notes: Vec<String> = fields.map(|field| format!("field `{field}`")).collect();
        notes.push(code_name(self.code()));
        notes.extend(self.reason().map(str::to_owned));
        let delay = self.retry_after();
        notes.extend(delay.map(|delay| format!("try again in {delay:?}")));
        write!(formatter, " ({})", notes.join(", "))
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.status.source()
    }
}

/// Returns whether tonic made the status of an answer that is not gRPC: of a page that is not found without a gRPC status,
/// or of a reply of HTTP/1, whose first bytes are too large a length of a frame.
fn is_of_another_protocol(status: &Status) -> bool {
    let is_page = status.code() == Code::Unimplemented
        && status.message().starts_with("grpc-status header missing");
    // The first letter of a page was taken for the flag of a message.
    let is_text =
        status.code() == Code::Internal && status.message().contains("invalid compression flag");
    is_page || is_text || status.source().is_some_and(is_of_http_1)
}

fn is_of_http_1(error: &(dyn Error + 'static)) -> bool {
    error.to_string().ends_with("frame with invalid size")
        || error.source().is_some_and(is_of_http_1)
}

/// Returns the maximum size of an answer if tonic made the status of one that exceeds it.
fn limit_of_answer(status: &Status) -> Option<&str> {
    let start = "Error, decoded message length too large: ";
    let message = status.message().strip_prefix(start)?;
    let limit = message.rsplit_once("the limit is: ")?.1;
    limit.strip_suffix(" bytes")
}

/// Returns the name of a code as gRPC writes it: `FAILED_PRECONDITION` for `FailedPrecondition`.
fn code_name(code: Code) -> String {
    let mut name = String::new();
    // The library has the names of the codes only in the spelling of Rust.
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

    #[test]
    fn a_refusal_carries_code_message_and_reason() {
        let mut details = ErrorDetails::new();
        details
            .set_error_info(GRAPH_NOT_CACHED, "hlorank", HashMap::new())
            .add_bad_request_violation("graph.graph_hash", "unknown");
        let message = "no graph of this hash is cached; send the graph itself";
        let status = Status::with_error_details(Code::FailedPrecondition, message, details);
        let error = ClientError::from(status);
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
    fn a_page_that_is_not_found_is_no_answer_of_a_server() {
        for (code, message, expected) in [
            (
                Code::Unimplemented,
                "grpc-status header missing, mapped from HTTP status code 404",
                None,
            ),
            (
                Code::Internal,
                "protocol error: received message with invalid compression flag: 116 (valid flags are 0 and 1)",
                None,
            ),
            (
                Code::Unavailable,
                "grpc-status header missing, mapped from HTTP status code 503",
                Some(Code::Unavailable),
            ),
        ] {
            let error = ClientError::of_call("http://127.0.0.1:7071", Status::new(code, message));
            let is_grpc = !matches!(error, ClientError::NotGrpc { .. });
            assert_eq!(is_grpc, expected.is_some(), "{error}");
            assert_eq!(error.code(), expected, "{error}");
        }
    }

    #[test]
    fn a_status_without_details_is_readable() {
        let error = ClientError::from(Status::new(Code::Unavailable, ""));
        assert_eq!(
            error.to_string(),
            "The service is currently unavailable (UNAVAILABLE)"
        );
        assert!(!error.is_graph_not_cached());
    }
}
