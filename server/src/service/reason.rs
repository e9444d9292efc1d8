//! The reason of every error, as in `ErrorInfo`. `docs/errors.md` explains each.

use tonic::Code;

/// Defines [`Reason`], and the names and codes of all reasons.
macro_rules! reasons {
    ($($reason:ident $name:literal $code:ident,)*) => {
        /// The reason of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Reason {
            $($reason,)*
        }

        impl Reason {
            /// The stable name in `UPPER_SNAKE_CASE`.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$reason => $name,)*
                }
            }

            /// Returns the reason of this name.
            pub(super) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$reason),)*
                    _ => None,
                }
            }

            /// The code of all errors with this reason.
            pub(super) fn code(self) -> Code {
                match self {
                    $(Self::$reason => Code::$code,)*
                }
            }
        }

        /// The names of all reasons.
        pub const REASONS: [&str; [$($name),*].len()] = [$($name),*];
    };
}

impl Reason {
    /// Whether the same request may succeed later.
    pub(super) fn is_temporary(self) -> bool {
        // A message that is too large stays so. A store that is full stays full until someone
        // deletes, and a client that sent too far ahead has to send more slowly.
        let is_lasting = matches!(
            self,
            Self::MessageTooLarge | Self::MeasurementsFull | Self::StreamAhead
        );
        self.code() == Code::ResourceExhausted && !is_lasting
    }
}

// gRPC has no code for what HTTP alone would refuse. Those reasons share `Unimplemented`, and the
// forms for JSON find the HTTP status by the reason.
reasons! {
    ClientLimit "CLIENT_LIMIT" ResourceExhausted,
    CompressionUnsupported "COMPRESSION_UNSUPPORTED" Unimplemented,
    ConfigsEmpty "CONFIGS_EMPTY" InvalidArgument,
    ConfigurableNodesInvalid "CONFIGURABLE_NODES_INVALID" InvalidArgument,
    ContentTypeUnsupported "CONTENT_TYPE_UNSUPPORTED" Unimplemented,
    DeadlineExceeded "DEADLINE_EXCEEDED" DeadlineExceeded,
    DeadlineTooShort "DEADLINE_TOO_SHORT" DeadlineExceeded,
    DuplicateId "DUPLICATE_ID" InvalidArgument,
    ExplainUnsupported "EXPLAIN_UNSUPPORTED" InvalidArgument,
    FeatureSetMismatch "FEATURE_SET_MISMATCH" InvalidArgument,
    FeatureSetUnknown "FEATURE_SET_UNKNOWN" NotFound,
    FeaturesInvalid "FEATURES_INVALID" InvalidArgument,
    FieldInvalid "FIELD_INVALID" InvalidArgument,
    FieldMissing "FIELD_MISSING" InvalidArgument,
    GraphCycle "GRAPH_CYCLE" InvalidArgument,
    GraphEmpty "GRAPH_EMPTY" InvalidArgument,
    // Not `NotFound`, which is for what does not exist: the client has the graph, and only has to
    // send it.
    GraphNotCached "GRAPH_NOT_CACHED" FailedPrecondition,
    GraphTaskMismatch "GRAPH_TASK_MISMATCH" InvalidArgument,
    GraphTooLarge "GRAPH_TOO_LARGE" InvalidArgument,
    HeaderInvalid "HEADER_INVALID" InvalidArgument,
    HloMalformed "HLO_MALFORMED" InvalidArgument,
    HostInvalid "HOST_INVALID" InvalidArgument,
    HostNotAllowed "HOST_NOT_ALLOWED" PermissionDenied,
    HttpMethodUnsupported "HTTP_METHOD_UNSUPPORTED" Unimplemented,
    HttpVersionUnsupported "HTTP_VERSION_UNSUPPORTED" Unimplemented,
    IndexOutOfRange "INDEX_OUT_OF_RANGE" InvalidArgument,
    InstructionTooLarge "INSTRUCTION_TOO_LARGE" InvalidArgument,
    LayoutInvalid "LAYOUT_INVALID" InvalidArgument,
    ListTooLong "LIST_TOO_LONG" InvalidArgument,
    MeasurementChanged "MEASUREMENT_CHANGED" AlreadyExists,
    MeasurementsFailed "MEASUREMENTS_FAILED" Unavailable,
    MeasurementsFull "MEASUREMENTS_FULL" ResourceExhausted,
    MeasurementsOff "MEASUREMENTS_OFF" FailedPrecondition,
    MemoryFull "MEMORY_FULL" ResourceExhausted,
    MessageLate "MESSAGE_LATE" DeadlineExceeded,
    MessageTooLarge "MESSAGE_TOO_LARGE" ResourceExhausted,
    MethodUnknown "METHOD_UNKNOWN" Unimplemented,
    ModelFailed "MODEL_FAILED" Internal,
    ModelNotFound "MODEL_NOT_FOUND" NotFound,
    ModelOutputInvalid "MODEL_OUTPUT_INVALID" Internal,
    ModelRejected "MODEL_REJECTED" FailedPrecondition,
    ModelsUnreadable "MODELS_UNREADABLE" FailedPrecondition,
    ModelTaskMismatch "MODEL_TASK_MISMATCH" InvalidArgument,
    ModuleInvalid "MODULE_INVALID" InvalidArgument,
    ModuleRequired "MODULE_REQUIRED" InvalidArgument,
    NestingTooDeep "NESTING_TOO_DEEP" InvalidArgument,
    NodeNotConfigurable "NODE_NOT_CONFIGURABLE" InvalidArgument,
    NodeSetTwice "NODE_SET_TWICE" InvalidArgument,
    NothingServes "NOTHING_SERVES" FailedPrecondition,
    NothingToConfigure "NOTHING_TO_CONFIGURE" InvalidArgument,
    NoOlderVersion "NO_OLDER_VERSION" FailedPrecondition,
    Overloaded "OVERLOADED" ResourceExhausted,
    // `Aborted` tells clients to read the state again before they repeat the change.
    Overtaken "OVERTAKEN" Aborted,
    PadUnknown "PAD_UNKNOWN" FailedPrecondition,
    PartialUnsupported "PARTIAL_UNSUPPORTED" InvalidArgument,
    PolicyNotKept "POLICY_NOT_KEPT" FailedPrecondition,
    ProgramNotPrepared "PROGRAM_NOT_PREPARED" InvalidArgument,
    QueueFull "QUEUE_FULL" ResourceExhausted,
    // Becomes `CANCELLED` behind tonic: see `transport`.
    RequestBroken "REQUEST_BROKEN" InvalidArgument,
    RequestMalformed "REQUEST_MALFORMED" InvalidArgument,
    ScopeMissing "SCOPE_MISSING" PermissionDenied,
    ServesAlready "SERVES_ALREADY" FailedPrecondition,
    ServiceUnknown "SERVICE_UNKNOWN" NotFound,
    SourceUnsupported "SOURCE_UNSUPPORTED" InvalidArgument,
    Stopping "STOPPING" Unavailable,
    StreamAhead "STREAM_AHEAD" ResourceExhausted,
    StreamIdle "STREAM_IDLE" DeadlineExceeded,
    StreamTooLong "STREAM_TOO_LONG" InvalidArgument,
    TensorTooLarge "TENSOR_TOO_LARGE" InvalidArgument,
    TokenMissing "TOKEN_MISSING" Unauthenticated,
    TokenUnknown "TOKEN_UNKNOWN" Unauthenticated,
    TooManyConfigs "TOO_MANY_CONFIGS" InvalidArgument,
    TooManyConfigEntries "TOO_MANY_CONFIG_ENTRIES" InvalidArgument,
    TooManyEdges "TOO_MANY_EDGES" InvalidArgument,
    TooManyMeasurements "TOO_MANY_MEASUREMENTS" InvalidArgument,
    TooManyNodes "TOO_MANY_NODES" InvalidArgument,
    TooManyRows "TOO_MANY_ROWS" InvalidArgument,
    UnknownCallee "UNKNOWN_CALLEE" InvalidArgument,
    UnknownNode "UNKNOWN_NODE" InvalidArgument,
    UnknownOperand "UNKNOWN_OPERAND" InvalidArgument,
    ValueOutOfRange "VALUE_OUT_OF_RANGE" InvalidArgument,
    WorkerFailed "WORKER_FAILED" Internal,
    WrongCount "WRONG_COUNT" InvalidArgument,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_are_those_that_the_readme_explains() {
        let page = include_str!("../../../docs/errors.md");
        // | code | reasons | meaning |, unlike the table of warnings, which has two columns.
        let rows = page.lines().filter(|line| line.split('|').count() == 5);
        let reasons = rows.filter_map(|line| line.split('|').nth(2));
        let explained: BTreeSet<&str> = reasons
            .flat_map(|reasons| reasons.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(explained, BTreeSet::from(REASONS));
    }
}
