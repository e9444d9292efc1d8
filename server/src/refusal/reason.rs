//! The reason of every error, as in `ErrorInfo`. `docs/errors.md` explains each.

use tonic::Code;

/// Defines [`Reason`] by the reasons of each code.
macro_rules! reasons {
    ($($code:ident { $($reason:ident,)* })*) => {
        /// The reason of an error, named as on the wire.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names on the wire")]
        pub(crate) enum Reason {
            $($($reason,)*)*
        }

        impl Reason {
            /// The stable name.
            pub(crate) fn name(self) -> &'static str {
                REASONS[self as usize]
            }

            /// The code of all errors with this reason.
            pub(crate) fn code(self) -> Code {
                match self {
                    $($(Self::$reason)|* => Code::$code,)*
                }
            }
        }

        /// The names of all reasons.
        pub const REASONS: [&str; [$($(Reason::$reason),*),*].len()] = [$($(stringify!($reason)),*),*];

        /// All reasons.
        #[cfg(test)]
        const ALL: [Reason; REASONS.len()] = [$($(Reason::$reason),*),*];
    };
}

impl Reason {
    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(self) -> bool {
        // A message that is too large stays so. A store that is full stays full until someone
        // deletes, and a client that sent too far ahead has to send more slowly.
        let is_lasting = matches!(
            self,
            Self::MESSAGE_TOO_LARGE | Self::MEASUREMENTS_FULL | Self::STREAM_AHEAD
        );
        self.code() == Code::ResourceExhausted && !is_lasting
    }
}

reasons! {
    Aborted {
        // `Aborted` tells clients to read the state again before they repeat the change.
        OVERTAKEN,
    }
    AlreadyExists {
        MEASUREMENT_CHANGED,
    }
    DeadlineExceeded {
        DEADLINE_EXCEEDED,
        DEADLINE_TOO_SHORT,
        MESSAGE_LATE,
        STREAM_IDLE,
    }
    FailedPrecondition {
        // Not `NotFound`, which is for what does not exist: the client has the graph, and only has to
        // send it.
        GRAPH_NOT_CACHED,
        LEASES_OFF,
        MEASUREMENTS_OFF,
        MODEL_REJECTED,
        MODELS_UNREADABLE,
        NOTHING_SERVES,
        NO_OLDER_VERSION,
        PAD_UNKNOWN,
        POLICY_NOT_KEPT,
        SERVES_ALREADY,
        UNKNOWN_BATCH,
    }
    Internal {
        MODEL_FAILED,
        MODEL_OUTPUT_INVALID,
        WORKER_FAILED,
    }
    InvalidArgument {
        CONFIGS_EMPTY,
        CONFIGURABLE_NODES_INVALID,
        DUPLICATE_ID,
        EXPLAIN_UNSUPPORTED,
        FEATURE_SET_MISMATCH,
        FEATURES_INVALID,
        FIELD_INVALID,
        FIELD_MISSING,
        GRAPH_CYCLE,
        GRAPH_EMPTY,
        GRAPH_TASK_MISMATCH,
        GRAPH_TOO_LARGE,
        HEADER_INVALID,
        HLO_MALFORMED,
        HOST_INVALID,
        INDEX_OUT_OF_RANGE,
        INSTRUCTION_TOO_LARGE,
        LAYOUT_INVALID,
        LIST_TOO_LONG,
        MODEL_TASK_MISMATCH,
        MODULE_INVALID,
        MODULE_REQUIRED,
        NESTING_TOO_DEEP,
        NODE_NOT_CONFIGURABLE,
        NODE_SET_TWICE,
        NOTHING_TO_CONFIGURE,
        PARTIAL_UNSUPPORTED,
        PROGRAM_NOT_PREPARED,
        // Becomes `CANCELLED` behind tonic: see `layers::explain`.
        REQUEST_BROKEN,
        REQUEST_MALFORMED,
        SOURCE_UNSUPPORTED,
        SPACE_EMPTY,
        STREAM_TOO_LONG,
        TENSOR_TOO_LARGE,
        TOO_MANY_CONFIGS,
        TOO_MANY_CONFIG_ENTRIES,
        TOO_MANY_EDGES,
        TOO_MANY_MEASUREMENTS,
        TOO_MANY_NODES,
        TOO_MANY_ROWS,
        UNKNOWN_CALLEE,
        UNKNOWN_NODE,
        UNKNOWN_OPERAND,
        VALUE_OUT_OF_RANGE,
        WRONG_COUNT,
    }
    NotFound {
        FEATURE_SET_UNKNOWN,
        MODEL_NOT_FOUND,
        SERVICE_UNKNOWN,
    }
    PermissionDenied {
        HOST_NOT_ALLOWED,
        SCOPE_MISSING,
    }
    ResourceExhausted {
        CLIENT_LIMIT,
        MEASUREMENTS_FULL,
        MEMORY_FULL,
        MESSAGE_TOO_LARGE,
        OVERLOADED,
        QUEUE_FULL,
        STREAM_AHEAD,
        TOO_MANY_LEASES,
    }
    Unauthenticated {
        TOKEN_MISSING,
        TOKEN_UNKNOWN,
    }
    Unavailable {
        MEASUREMENTS_FAILED,
        STOPPING,
    }
    // gRPC has no code for what HTTP alone would refuse. The forms for JSON find the HTTP status by the reason.
    Unimplemented {
        COMPRESSION_UNSUPPORTED,
        CONTENT_TYPE_UNSUPPORTED,
        HTTP_METHOD_UNSUPPORTED,
        HTTP_VERSION_UNSUPPORTED,
        METHOD_UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::code_name;

    #[test]
    fn what_is_full_is_temporary_unless_it_stays_full() {
        let temporary = ALL.into_iter().filter(|reason| reason.is_temporary());
        let names: Vec<&str> = temporary.map(Reason::name).collect();
        let expected = "CLIENT_LIMIT MEMORY_FULL OVERLOADED QUEUE_FULL TOO_MANY_LEASES";
        assert_eq!(names.join(" "), expected);
    }

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
                let mut all = ALL.into_iter();
                let reason = all.find(|reason| reason.name() == name);
                let reason = reason.unwrap_or_else(|| unreachable!("{name} is no reason"));
                // It becomes `CANCELLED` behind tonic.
                if reason != Reason::REQUEST_BROKEN {
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
            include_str!("../../../client/python/hlorank/checks/errors.py"),
        ];
        let lines = clients.iter().flat_map(|client| client.lines());
        let values = lines.filter_map(|line| line.split_once("= \"")?.1.split('"').next());
        let is_reason = |text: &&str| text.contains('_') && *text == text.to_ascii_uppercase();
        let known: BTreeSet<&str> = values.filter(is_reason).collect();
        assert_eq!(
            known,
            BTreeSet::from([
                "DEADLINE_TOO_SHORT",
                "GRAPH_NOT_CACHED",
                "MEASUREMENTS_OFF",
                "UNKNOWN_BATCH"
            ])
        );
        assert!(known.iter().all(|reason| REASONS.contains(reason)));
    }
}
