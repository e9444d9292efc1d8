//! The reason of every error, as in `ErrorInfo`. `docs/errors.md` explains each.

use tonic::Code;

/// Defines [`Reason`], and the names and codes of all reasons.
macro_rules! reasons {
    ($($code:ident { $($reason:ident $name:literal,)* })*) => {
        /// The reason of an error.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Reason {
            $($($reason,)*)*
        }

        impl Reason {
            /// The stable name in `UPPER_SNAKE_CASE`.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $($(Self::$reason => $name,)*)*
                }
            }

            /// Returns the reason of this name.
            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($($name => Some(Self::$reason),)*)*
                    _ => None,
                }
            }

            /// The code of all errors with this reason.
            pub(crate) fn code(self) -> Code {
                match self {
                    $($(Self::$reason)|* => Code::$code,)*
                }
            }
        }

        /// The names of all reasons.
        pub const REASONS: [&str; [$($($name),*),*].len()] = [$($($name),*),*];
    };
}

impl Reason {
    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(self) -> bool {
        // A message that is too large stays so. A store that is full stays full until someone
        // deletes, and a client that sent too far ahead has to send more slowly.
        let is_lasting = matches!(
            self,
            Self::MessageTooLarge | Self::MeasurementsFull | Self::StreamAhead
        );
        self.code() == Code::ResourceExhausted && !is_lasting
    }
}

reasons! {
    Aborted {
        // `Aborted` tells clients to read the state again before they repeat the change.
        Overtaken "OVERTAKEN",
    }
    AlreadyExists {
        MeasurementChanged "MEASUREMENT_CHANGED",
    }
    DeadlineExceeded {
        DeadlineExceeded "DEADLINE_EXCEEDED",
        DeadlineTooShort "DEADLINE_TOO_SHORT",
        MessageLate "MESSAGE_LATE",
        StreamIdle "STREAM_IDLE",
    }
    FailedPrecondition {
        // Not `NotFound`, which is for what does not exist: the client has the graph, and only has to
        // send it.
        GraphNotCached "GRAPH_NOT_CACHED",
        MeasurementsOff "MEASUREMENTS_OFF",
        ModelRejected "MODEL_REJECTED",
        ModelsUnreadable "MODELS_UNREADABLE",
        NothingServes "NOTHING_SERVES",
        NoOlderVersion "NO_OLDER_VERSION",
        PadUnknown "PAD_UNKNOWN",
        PolicyNotKept "POLICY_NOT_KEPT",
        ServesAlready "SERVES_ALREADY",
    }
    Internal {
        ModelFailed "MODEL_FAILED",
        ModelOutputInvalid "MODEL_OUTPUT_INVALID",
        WorkerFailed "WORKER_FAILED",
    }
    InvalidArgument {
        ConfigsEmpty "CONFIGS_EMPTY",
        ConfigurableNodesInvalid "CONFIGURABLE_NODES_INVALID",
        DuplicateId "DUPLICATE_ID",
        ExplainUnsupported "EXPLAIN_UNSUPPORTED",
        FeatureSetMismatch "FEATURE_SET_MISMATCH",
        FeaturesInvalid "FEATURES_INVALID",
        FieldInvalid "FIELD_INVALID",
        FieldMissing "FIELD_MISSING",
        GraphCycle "GRAPH_CYCLE",
        GraphEmpty "GRAPH_EMPTY",
        GraphTaskMismatch "GRAPH_TASK_MISMATCH",
        GraphTooLarge "GRAPH_TOO_LARGE",
        HeaderInvalid "HEADER_INVALID",
        HloMalformed "HLO_MALFORMED",
        HostInvalid "HOST_INVALID",
        IndexOutOfRange "INDEX_OUT_OF_RANGE",
        InstructionTooLarge "INSTRUCTION_TOO_LARGE",
        LayoutInvalid "LAYOUT_INVALID",
        ListTooLong "LIST_TOO_LONG",
        ModelTaskMismatch "MODEL_TASK_MISMATCH",
        ModuleInvalid "MODULE_INVALID",
        ModuleRequired "MODULE_REQUIRED",
        NestingTooDeep "NESTING_TOO_DEEP",
        NodeNotConfigurable "NODE_NOT_CONFIGURABLE",
        NodeSetTwice "NODE_SET_TWICE",
        NothingToConfigure "NOTHING_TO_CONFIGURE",
        PartialUnsupported "PARTIAL_UNSUPPORTED",
        ProgramNotPrepared "PROGRAM_NOT_PREPARED",
        // Becomes `CANCELLED` behind tonic: see `transport`.
        RequestBroken "REQUEST_BROKEN",
        RequestMalformed "REQUEST_MALFORMED",
        SourceUnsupported "SOURCE_UNSUPPORTED",
        StreamTooLong "STREAM_TOO_LONG",
        TensorTooLarge "TENSOR_TOO_LARGE",
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
        WrongCount "WRONG_COUNT",
    }
    NotFound {
        FeatureSetUnknown "FEATURE_SET_UNKNOWN",
        ModelNotFound "MODEL_NOT_FOUND",
        ServiceUnknown "SERVICE_UNKNOWN",
    }
    PermissionDenied {
        HostNotAllowed "HOST_NOT_ALLOWED",
        ScopeMissing "SCOPE_MISSING",
    }
    ResourceExhausted {
        ClientLimit "CLIENT_LIMIT",
        MeasurementsFull "MEASUREMENTS_FULL",
        MemoryFull "MEMORY_FULL",
        MessageTooLarge "MESSAGE_TOO_LARGE",
        Overloaded "OVERLOADED",
        QueueFull "QUEUE_FULL",
        StreamAhead "STREAM_AHEAD",
    }
    Unauthenticated {
        TokenMissing "TOKEN_MISSING",
        TokenUnknown "TOKEN_UNKNOWN",
    }
    Unavailable {
        MeasurementsFailed "MEASUREMENTS_FAILED",
        Stopping "STOPPING",
    }
    // gRPC has no code for what HTTP alone would refuse. The forms for JSON find the HTTP status by the reason.
    Unimplemented {
        CompressionUnsupported "COMPRESSION_UNSUPPORTED",
        ContentTypeUnsupported "CONTENT_TYPE_UNSUPPORTED",
        HttpMethodUnsupported "HTTP_METHOD_UNSUPPORTED",
        HttpVersionUnsupported "HTTP_VERSION_UNSUPPORTED",
        MethodUnknown "METHOD_UNKNOWN",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::code_name;

    #[test]
    fn the_page_explains_every_reason_with_its_code() {
        let page = include_str!("../../../docs/errors.md");
        // | code | reasons | meaning |, unlike the table of warnings, which has two columns.
        let rows = page.lines().filter(|line| line.split('|').count() == 5);
        let quoted = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        let mut explained = BTreeSet::new();
        let mut code = "";
        for row in rows {
            let cells: Vec<&str> = row.split('|').collect();
            // A row without a code has that of the row above.
            code = quoted(cells[1]).next().unwrap_or(code);
            for name in quoted(cells[2]) {
                let reason =
                    Reason::named(name).unwrap_or_else(|| unreachable!("{name} is no reason"));
                // It becomes `CANCELLED` behind tonic.
                if reason != Reason::RequestBroken {
                    assert_eq!(code, code_name(reason.code()), "the code of {name}");
                }
                explained.insert(name);
            }
        }
        assert_eq!(explained, BTreeSet::from(REASONS));
    }

    #[test]
    fn clients_know_reasons_that_exist() {
        let clients = [
            include_str!("../../../client/src/calls.rs"),
            include_str!("../../../client/src/error.rs"),
            include_str!("../../../client/python/hlorank/calls/aio/calls.py"),
            include_str!("../../../client/python/hlorank/calls/kept.py"),
        ];
        let lines = clients.iter().flat_map(|client| client.lines());
        let values = lines.filter_map(|line| line.split_once("= \"")?.1.split('"').next());
        let is_reason = |text: &&str| text.contains('_') && *text == text.to_ascii_uppercase();
        let known: BTreeSet<&str> = values.filter(is_reason).collect();
        assert_eq!(
            known,
            BTreeSet::from(["DEADLINE_TOO_SHORT", "GRAPH_NOT_CACHED", "MEASUREMENTS_OFF"])
        );
        assert!(known.iter().all(|reason| REASONS.contains(reason)));
    }
}
