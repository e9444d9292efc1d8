//! How clients see the errors of the crate `graph`.

use hlorank_graph::{ConfigurationError, GraphError, LimitKind, TextError};

use super::{Reason, Refusal, Refused};

/// Describes a type of error: first the variants that have more than a reason, then the others by reason.
macro_rules! describe {
    ($error:ident: { $($held:pat => $refusal:expr,)* } $($($variant:ident)|+ => $reason:ident,)+) => {
        impl Refused for $error {
            fn refusal(&self) -> Refusal<'_> {
                match self {
                    $($held => $refusal,)*
                    $($(Self::$variant { .. })|+ => Reason::$reason.into(),)+
                }
            }
        }
    };
}

describe! { GraphError:
    {
        Self::Text { source, .. } => source.refusal(),
        Self::TooMany { kind, limit, .. } => too_many(*kind).allowed(limit),
        Self::InstructionTooLarge { found, limit, .. } => Reason::INSTRUCTION_TOO_LARGE.allowed(limit).found(found),
    }
    Encoding => REQUEST_MALFORMED,
    Malformed | OtherFormat => HLO_MALFORMED,
    InvalidModule => MODULE_INVALID,
    Fusion | OtherSlots => PROGRAM_NOT_PREPARED,
    ProgramWithoutModule => MODULE_REQUIRED,
    WrongSource => GRAPH_TASK_MISMATCH,
    FeatureSetName | SetDescription | InstanceTooLong | InstanceFeatures => FIELD_INVALID,
    SetDiffers => FEATURE_SET_MISMATCH,
    Empty => GRAPH_EMPTY,
    DuplicateInstruction | DuplicateComputation => DUPLICATE_ID,
    UnknownOperand => UNKNOWN_OPERAND,
    UnknownCallee => UNKNOWN_CALLEE,
    UnknownEdgeNode => UNKNOWN_NODE,
    Cycle => GRAPH_CYCLE,
    TensorTooLarge => TENSOR_TOO_LARGE,
    UnknownConfigurableNode | DuplicateConfigurableNode | ConfigurableKernel => CONFIGURABLE_NODES_INVALID,
    ArrayLength | Operands | FeatureNotFinite | FeatureTooLarge | NodeFeatures | ColumnNames | WrongColumns => FEATURES_INVALID,
    ReversedEdge | FeatureImpossible | PadValue => FEATURES_INVALID,
}

describe! { ConfigurationError:
    {
        Self::TooMany { found, limit } => too_many(LimitKind::Configs).found(found).allowed(limit),
        Self::TooManyEntries { configs, slots, limit } => {
            too_many(LimitKind::ConfigEntries).found(configs.saturating_mul(*slots)).allowed(limit)
        },
        Self::TooLong { found, limit, .. } => Reason::LIST_TOO_LONG.allowed(limit).found(found),
    }
    Malformed | SeveralForms | DenseAndTable => REQUEST_MALFORMED,
    Empty => CONFIGS_EMPTY,
    WrongTask => GRAPH_TASK_MISMATCH,
    NothingToConfigure | NothingToFuse => NOTHING_TO_CONFIGURE,
    NotConfigurable | NotFusible | NoSuchSlot => NODE_NOT_CONFIGURABLE,
    SetTwice => NODE_SET_TWICE,
    WrongCount | WrongColumns | ParameterCount => WRONG_COUNT,
    DimensionTwice | NoSuchDimension => LAYOUT_INVALID,
    Bound | TileTooLarge | OutOfRange | NotWhole | UnusedBits | NoColumns | NotFinite | NotBounds => VALUE_OUT_OF_RANGE,
    IndexOutsideTable => INDEX_OUT_OF_RANGE,
}

/// A limit of a setting is exceeded.
fn too_many(kind: LimitKind) -> Refusal<'static> {
    match kind {
        LimitKind::Nodes => Reason::TOO_MANY_NODES.limit("--max-nodes"),
        LimitKind::Edges => Reason::TOO_MANY_EDGES.limit("--max-nodes"),
        LimitKind::Configs => Reason::TOO_MANY_CONFIGS.limit("--max-configs"),
        LimitKind::ConfigEntries => Reason::TOO_MANY_CONFIG_ENTRIES.limit("--max-config-entries"),
    }
}

/// The reasons of the same mistakes in a serialized module, and of limits that only text has.
impl Refused for TextError {
    fn refusal(&self) -> Refusal<'_> {
        match self {
            Self::ListTooLong { limit } => Reason::INSTRUCTION_TOO_LARGE.allowed(limit),
            Self::TooDeep { limit } => Reason::NESTING_TOO_DEEP.allowed(limit),
            Self::InvalidInstruction { .. } => Reason::MODULE_INVALID.into(),
            Self::UnknownOperand { .. } => Reason::UNKNOWN_OPERAND.into(),
            Self::UnknownComputation { .. } => Reason::UNKNOWN_CALLEE.into(),
            Self::DuplicateInstruction { .. } | Self::DuplicateComputation { .. } => {
                Reason::DUPLICATE_ID.into()
            }
            // The rest are mistakes against the grammar.
            _ => Reason::HLO_MALFORMED.into(),
        }
    }
}
