//! Every refusal, and the one place where it becomes a gRPC status.

use std::time::Duration;

use hlorank_graph::{ConfigurationError, Digest, GraphError, LimitKind, TextError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::limit::{Limit, configuration_limit, graph_limit, hint};
use crate::{
    compute::WorkerFailed,
    engine::EngineError,
    memory::MemoryFull,
    registry::{AdminError, ScanError, SelectError},
    security::Scope,
};

/// Domain of the `ErrorInfo` of every error.
pub(super) const DOMAIN: &str = "hlorank";

/// The reason of every error, as in `ErrorInfo`; docs/errors.md explains each.
pub const REASONS: [&str; 55] = [
    "CLIENT_LIMIT",
    "CONFIGS_EMPTY",
    "CONFIGURABLE_NODES_INVALID",
    "DEADLINE_EXCEEDED",
    "DEADLINE_TOO_SHORT",
    "DUPLICATE_ID",
    "FEATURES_INVALID",
    "FIELD_INVALID",
    "FIELD_MISSING",
    "GRAPH_CYCLE",
    "GRAPH_EMPTY",
    "GRAPH_NOT_CACHED",
    "GRAPH_TASK_MISMATCH",
    "GRAPH_TOO_LARGE",
    "HLO_MALFORMED",
    "INDEX_OUT_OF_RANGE",
    "INSTRUCTION_TOO_LARGE",
    "LIST_TOO_LONG",
    "MEMORY_FULL",
    "MESSAGE_TOO_LARGE",
    "MODEL_FAILED",
    "MODEL_NOT_FOUND",
    "MODEL_OUTPUT_INVALID",
    "MODEL_REJECTED",
    "MODELS_UNREADABLE",
    "MODEL_TASK_MISMATCH",
    "NESTING_TOO_DEEP",
    "NODE_NOT_CONFIGURABLE",
    "NODE_SET_TWICE",
    "NOTHING_SERVES",
    "NOTHING_TO_CONFIGURE",
    "NO_OLDER_VERSION",
    "OVERLOADED",
    "OVERTAKEN",
    "PAD_UNKNOWN",
    "POLICY_NOT_KEPT",
    "QUEUE_FULL",
    "REQUEST_MALFORMED",
    "SCOPE_MISSING",
    "SERVES_ALREADY",
    "STOPPING",
    "STREAM_TOO_LONG",
    "TOKEN_MISSING",
    "TOKEN_UNKNOWN",
    "TOO_MANY_CONFIGS",
    "TOO_MANY_CONFIG_ENTRIES",
    "TOO_MANY_EDGES",
    "TOO_MANY_NODES",
    "TOO_MANY_ROWS",
    "UNKNOWN_CALLEE",
    "UNKNOWN_NODE",
    "UNKNOWN_OPERAND",
    "VALUE_OUT_OF_RANGE",
    "WORKER_FAILED",
    "WRONG_COUNT",
];

/// How long a client waits at least before it tries again when the server is full, and at most.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(30)];

/// Why a call was refused or failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// A field is missing that the call cannot do without.
    #[error("{field} is missing; {hint}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What to send.
        hint: &'static str,
    },
    /// A field whose value makes no sense.
    #[error("{field} is {found}, expected {expected}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// A hash of a graph that is not here.
    #[error("graph {hash} is not cached; send the graph itself, then its hash works again")]
    GraphNotCached {
        /// The hash.
        hash: Digest,
    },
    /// A module over the limit.
    #[error("{field} has {found} bytes, at most {limit} are taken; raise --max-graph-bytes on the server")]
    GraphBytes {
        /// The form it came in.
        field: &'static str,
        /// Bytes sent.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A graph that was refused.
    #[error("graph: {0}{hint}", hint = hint(graph_limit(.0)))]
    Graph(GraphError),
    /// Configurations that were refused.
    #[error("{field}: {source}{hint}", hint = hint(configuration_limit(.source)))]
    Configuration {
        /// The form they came in.
        field: &'static str,
        /// Why.
        source: ConfigurationError,
    },
    /// A batch of a stream that was refused.
    #[error("batch {batch}, whose configuration 0 is number {first} of the stream: {source}")]
    Batch {
        /// Which batch, from 0.
        batch: usize,
        /// Configurations before it.
        first: usize,
        /// Why.
        source: Box<ServiceError>,
    },
    /// More configurations than one stream may hold.
    #[error(
        "batch {batch} brings the stream to {found} configurations, at most {limit} are taken; send several \
         streams, or raise --max-stream-configs on the server"
    )]
    StreamTooLong {
        /// Which batch, from 0.
        batch: usize,
        /// Configurations of all batches until now.
        found: usize,
        /// Configurations allowed.
        limit: usize,
    },
    /// A call that took longer than its client allowed.
    #[error("the call took longer than the {allowed:?} that grpc-timeout allows; allow more, or send less")]
    DeadlineExceeded {
        /// What was allowed.
        allowed: Duration,
    },
    /// No such model, or not for these configurations.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// No such model, whatever its state.
    #[error("no model is named `{name}`; ListModels lists them")]
    UnknownModel {
        /// What was asked for.
        name: String,
    },
    /// No such version, whatever its state.
    #[error("model `{name}` has no version {version}, or none that serves; ListModels lists them")]
    UnknownVersion {
        /// The model.
        name: String,
        /// What was asked for; 0 for the one that serves.
        version: u64,
    },
    /// A change of what serves that was not made.
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// The model does not take this graph, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A worker panicked.
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
    /// A call without a token to a server that asks for one.
    #[error("the call has no token; send one in the header authorization, as Bearer TOKEN")]
    TokenMissing,
    /// A token that is nobody's.
    #[error("the server does not know this token; it may have been replaced")]
    TokenUnknown,
    /// A token for other calls.
    #[error("the token of `{name}` has not the scope `{scope}`, which this call needs")]
    ScopeMissing {
        /// Whose token it is.
        name: String,
        /// What it lacks.
        scope: Scope,
    },
    /// Too many requests.
    #[error(
        "the server has {limit} requests in progress or waiting, its most; try again later, or raise --max-requests \
         on the server"
    )]
    Overloaded {
        /// How many requests are taken.
        limit: u32,
        /// How long half of what they wait for takes.
        half_done_in: Duration,
    },
    /// Too many requests of one client.
    #[error(
        "this client has {limit} requests in progress or waiting, the most of one; wait for some of them, or raise \
         --max-client-requests on the server"
    )]
    ClientLimit {
        /// How many requests of one client are taken.
        limit: u32,
    },
}

impl From<MemoryFull> for ServiceError {
    fn from(full: MemoryFull) -> Self {
        Self::Engine(full.into())
    }
}

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let (code, reason, field) = error.classify();
        let message = error.to_string();
        let passed = error.limit().map(Limit::metadata).unwrap_or_default();
        let mut details = ErrorDetails::with_error_info(reason, DOMAIN, passed);
        if let Some(field) = field {
            details.add_bad_request_violation(field, message.clone());
        }
        if code == Code::ResourceExhausted {
            let [least, most] = RETRY_DELAYS;
            details.set_retry_info(Some(error.room_in().clamp(least, most)));
        }
        if code == Code::Internal {
            tracing::error!(reason, %error, "internal error");
        }
        Self::with_error_details(code, message, details)
    }
}

impl ServiceError {
    /// When the server is likely to take what it refused for want of room; zero where that is not known.
    fn room_in(&self) -> Duration {
        match self {
            Self::Overloaded { half_done_in, .. } => *half_done_in,
            Self::Engine(EngineError::QueueFull { room_in, .. }) => *room_in,
            Self::Batch { source, .. } => source.room_in(),
            _ => Duration::ZERO,
        }
    }

    /// Code, reason, and the field to blame.
    fn classify(&self) -> (Code, &'static str, Option<&'static str>) {
        use Code::{FailedPrecondition, Internal, InvalidArgument, NotFound, ResourceExhausted};
        match self {
            Self::Missing { field, .. } => (InvalidArgument, "FIELD_MISSING", Some(field)),
            Self::Invalid { field, .. } => (InvalidArgument, "FIELD_INVALID", Some(field)),
            Self::GraphNotCached { .. } => (FailedPrecondition, "GRAPH_NOT_CACHED", None),
            Self::GraphBytes { field, .. } => (InvalidArgument, "GRAPH_TOO_LARGE", Some(field)),
            Self::Graph(error) => (InvalidArgument, graph_reason(error), Some("graph")),
            Self::Configuration { field, source } => {
                (InvalidArgument, configuration_reason(source), Some(field))
            }
            Self::Batch { source, .. } => source.classify(),
            Self::DeadlineExceeded { .. } => (Code::DeadlineExceeded, "DEADLINE_EXCEEDED", None),
            Self::StreamTooLong { .. } => (InvalidArgument, "STREAM_TOO_LONG", Some("configs")),
            Self::Select(SelectError::WrongTask { .. }) => {
                (InvalidArgument, "MODEL_TASK_MISMATCH", Some("model"))
            }
            Self::Select(_) | Self::UnknownModel { .. } | Self::UnknownVersion { .. } => {
                (NotFound, "MODEL_NOT_FOUND", None)
            }
            Self::Admin(error) => match error {
                AdminError::UnknownModel { .. } | AdminError::UnknownVersion { .. } => {
                    (NotFound, "MODEL_NOT_FOUND", None)
                }
                AdminError::Rejected { .. } => (FailedPrecondition, "MODEL_REJECTED", None),
                AdminError::NoOlderVersion { .. } => (FailedPrecondition, "NO_OLDER_VERSION", None),
                AdminError::ServesAlready { .. } => (FailedPrecondition, "SERVES_ALREADY", Some("version")),
                AdminError::NothingServes { .. } => (FailedPrecondition, "NOTHING_SERVES", None),
                AdminError::Superseded { .. } => (Code::Aborted, "OVERTAKEN", None),
                AdminError::Policy(_) | AdminError::Scan(ScanError::Policy(_)) => {
                    (FailedPrecondition, "POLICY_NOT_KEPT", None)
                }
                AdminError::Scan(ScanError::Folder { .. }) => (FailedPrecondition, "MODELS_UNREADABLE", None),
                AdminError::Stopping => (Code::Unavailable, "STOPPING", None),
                AdminError::Failed => (Internal, "WORKER_FAILED", None),
            },
            Self::Engine(error) => match error {
                EngineError::PadUnknown { .. } => (FailedPrecondition, "PAD_UNKNOWN", Some("graph.features")),
                EngineError::TooManyRows(_) => (InvalidArgument, "TOO_MANY_ROWS", Some("configs")),
                EngineError::QueueFull { .. } => (ResourceExhausted, "QUEUE_FULL", None),
                EngineError::MemoryFull(_) => (ResourceExhausted, "MEMORY_FULL", None),
                EngineError::DeadlineTooShort { .. } => (Code::DeadlineExceeded, "DEADLINE_TOO_SHORT", None),
                EngineError::InvalidOutput { .. } => (Internal, "MODEL_OUTPUT_INVALID", None),
                EngineError::Model(_) => (Internal, "MODEL_FAILED", None),
                EngineError::Worker(_) => (Internal, "WORKER_FAILED", None),
            },
            Self::Worker(_) => (Internal, "WORKER_FAILED", None),
            Self::TokenMissing => (Code::Unauthenticated, "TOKEN_MISSING", None),
            Self::TokenUnknown => (Code::Unauthenticated, "TOKEN_UNKNOWN", None),
            Self::ScopeMissing { .. } => (Code::PermissionDenied, "SCOPE_MISSING", None),
            Self::Overloaded { .. } => (ResourceExhausted, "OVERLOADED", None),
            Self::ClientLimit { .. } => (ResourceExhausted, "CLIENT_LIMIT", None),
        }
    }
}

fn graph_reason(error: &GraphError) -> &'static str {
    match error {
        GraphError::Malformed { .. } => "HLO_MALFORMED",
        GraphError::Text { source, .. } => text_reason(source),
        GraphError::Empty => "GRAPH_EMPTY",
        GraphError::DuplicateInstruction { .. } | GraphError::DuplicateComputation { .. } => "DUPLICATE_ID",
        GraphError::UnknownOperand { .. } => "UNKNOWN_OPERAND",
        GraphError::UnknownCallee { .. } => "UNKNOWN_CALLEE",
        GraphError::UnknownEdgeNode { .. } => "UNKNOWN_NODE",
        GraphError::Cycle { .. } => "GRAPH_CYCLE",
        GraphError::TooMany { kind: LimitKind::Edges, .. } => "TOO_MANY_EDGES",
        GraphError::TooMany { .. } => "TOO_MANY_NODES",
        GraphError::InstructionTooLarge { .. } => "INSTRUCTION_TOO_LARGE",
        GraphError::UnknownConfigurableNode { .. }
        | GraphError::DuplicateConfigurableNode { .. }
        | GraphError::ConfigurableKernel { .. } => "CONFIGURABLE_NODES_INVALID",
        GraphError::ArrayLength { .. }
        | GraphError::FeatureNotFinite { .. }
        | GraphError::PadValue { .. } => "FEATURES_INVALID",
    }
}

/// The reasons of the same mistakes in a serialized module, and of limits that only text has.
fn text_reason(error: &TextError) -> &'static str {
    match error {
        TextError::ListTooLong { .. } => "INSTRUCTION_TOO_LARGE",
        TextError::TooDeep { .. } => "NESTING_TOO_DEEP",
        TextError::UnknownOperand { .. } => "UNKNOWN_OPERAND",
        TextError::UnknownComputation { .. } => "UNKNOWN_CALLEE",
        TextError::DuplicateInstruction { .. } | TextError::DuplicateComputation { .. } => "DUPLICATE_ID",
        _ => "HLO_MALFORMED",
    }
}

fn configuration_reason(error: &ConfigurationError) -> &'static str {
    match error {
        ConfigurationError::Empty => "CONFIGS_EMPTY",
        ConfigurationError::TooMany { .. } => "TOO_MANY_CONFIGS",
        ConfigurationError::TooManyEntries { .. } => "TOO_MANY_CONFIG_ENTRIES",
        ConfigurationError::WrongTask { .. } => "GRAPH_TASK_MISMATCH",
        ConfigurationError::NothingToConfigure => "NOTHING_TO_CONFIGURE",
        ConfigurationError::NotConfigurable { .. } | ConfigurationError::NoSuchSlot { .. } => {
            "NODE_NOT_CONFIGURABLE"
        }
        ConfigurationError::SetTwice { .. } => "NODE_SET_TWICE",
        ConfigurationError::WrongCount { .. } => "WRONG_COUNT",
        ConfigurationError::TooLong { .. } => "LIST_TOO_LONG",
        ConfigurationError::OutOfRange { .. }
        | ConfigurationError::NotWhole { .. }
        | ConfigurationError::NotBounds { .. } => "VALUE_OUT_OF_RANGE",
        ConfigurationError::IndexOutsideTable { .. } => "INDEX_OUT_OF_RANGE",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_are_those_that_the_readme_explains() {
        let page = include_str!("../../../docs/errors.md");
        // | code | reasons | meaning |
        let reasons = page.lines().filter_map(|line| line.split('|').nth(2));
        let explained: BTreeSet<&str> =
            reasons.flat_map(|reasons| reasons.split('`').skip(1).step_by(2)).collect();
        assert_eq!(explained, BTreeSet::from(REASONS));
    }
}
