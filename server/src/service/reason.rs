//! The reason of every error, as in `ErrorInfo`. `docs/errors.md` explains each.

/// Defines [`Reason`] and the names of all reasons.
macro_rules! reasons {
    ($($reason:ident $name:literal,)*) => {
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
        }

        /// The names of all reasons.
        pub const REASONS: [&str; [$($name),*].len()] = [$($name),*];
    };
}

reasons! {
    ClientLimit "CLIENT_LIMIT",
    CompressionUnsupported "COMPRESSION_UNSUPPORTED",
    ConfigsEmpty "CONFIGS_EMPTY",
    ConfigurableNodesInvalid "CONFIGURABLE_NODES_INVALID",
    ContentTypeUnsupported "CONTENT_TYPE_UNSUPPORTED",
    DeadlineExceeded "DEADLINE_EXCEEDED",
    DeadlineTooShort "DEADLINE_TOO_SHORT",
    DuplicateId "DUPLICATE_ID",
    ExplainUnsupported "EXPLAIN_UNSUPPORTED",
    FeatureSetMismatch "FEATURE_SET_MISMATCH",
    FeatureSetUnknown "FEATURE_SET_UNKNOWN",
    FeaturesInvalid "FEATURES_INVALID",
    FieldInvalid "FIELD_INVALID",
    FieldMissing "FIELD_MISSING",
    GraphCycle "GRAPH_CYCLE",
    GraphEmpty "GRAPH_EMPTY",
    GraphNotCached "GRAPH_NOT_CACHED",
    GraphTaskMismatch "GRAPH_TASK_MISMATCH",
    GraphTooLarge "GRAPH_TOO_LARGE",
    HeaderInvalid "HEADER_INVALID",
    HloMalformed "HLO_MALFORMED",
    HostInvalid "HOST_INVALID",
    HostNotAllowed "HOST_NOT_ALLOWED",
    HttpMethodUnsupported "HTTP_METHOD_UNSUPPORTED",
    HttpVersionUnsupported "HTTP_VERSION_UNSUPPORTED",
    IndexOutOfRange "INDEX_OUT_OF_RANGE",
    InstructionTooLarge "INSTRUCTION_TOO_LARGE",
    LayoutInvalid "LAYOUT_INVALID",
    ListTooLong "LIST_TOO_LONG",
    MeasurementChanged "MEASUREMENT_CHANGED",
    MeasurementsFailed "MEASUREMENTS_FAILED",
    MeasurementsFull "MEASUREMENTS_FULL",
    MeasurementsOff "MEASUREMENTS_OFF",
    MemoryFull "MEMORY_FULL",
    MessageLate "MESSAGE_LATE",
    MessageTooLarge "MESSAGE_TOO_LARGE",
    MethodUnknown "METHOD_UNKNOWN",
    ModelFailed "MODEL_FAILED",
    ModelNotFound "MODEL_NOT_FOUND",
    ModelOutputInvalid "MODEL_OUTPUT_INVALID",
    ModelRejected "MODEL_REJECTED",
    ModelsUnreadable "MODELS_UNREADABLE",
    ModelTaskMismatch "MODEL_TASK_MISMATCH",
    ModuleInvalid "MODULE_INVALID",
    ModuleRequired "MODULE_REQUIRED",
    NestingTooDeep "NESTING_TOO_DEEP",
    NodeNotConfigurable "NODE_NOT_CONFIGURABLE",
    NodeSetTwice "NODE_SET_TWICE",
    NothingServes "NOTHING_SERVES",
    NothingToConfigure "NOTHING_TO_CONFIGURE",
    NoOlderVersion "NO_OLDER_VERSION",
    Overloaded "OVERLOADED",
    Overtaken "OVERTAKEN",
    PadUnknown "PAD_UNKNOWN",
    PartialUnsupported "PARTIAL_UNSUPPORTED",
    PolicyNotKept "POLICY_NOT_KEPT",
    ProgramNotPrepared "PROGRAM_NOT_PREPARED",
    QueueFull "QUEUE_FULL",
    RequestBroken "REQUEST_BROKEN",
    RequestMalformed "REQUEST_MALFORMED",
    ScopeMissing "SCOPE_MISSING",
    ServesAlready "SERVES_ALREADY",
    ServiceUnknown "SERVICE_UNKNOWN",
    SourceUnsupported "SOURCE_UNSUPPORTED",
    Stopping "STOPPING",
    StreamAhead "STREAM_AHEAD",
    StreamIdle "STREAM_IDLE",
    StreamTooLong "STREAM_TOO_LONG",
    TensorTooLarge "TENSOR_TOO_LARGE",
    TokenMissing "TOKEN_MISSING",
    TokenUnknown "TOKEN_UNKNOWN",
    TooManyConfigs "TOO_MANY_CONFIGS",
    TooManyConfigEntries "TOO_MANY_CONFIG_ENTRIES",
    TooManyEdges "TOO_MANY_EDGES",
    TooManyMeasurements "TOO_MANY_MEASUREMENTS",
    TooManyNodes "TOO_MANY_NODES",
    TooManyRows "TOO_MANY_ROWS",
    UnknownCallee "UNKNOWN_CALLEE",
    UnknownNode "UNKNOWN_NODE",
    UnknownOperand "UNKNOWN_OPERAND",
    ValueOutOfRange "VALUE_OUT_OF_RANGE",
    WorkerFailed "WORKER_FAILED",
    WrongCount "WRONG_COUNT",
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
