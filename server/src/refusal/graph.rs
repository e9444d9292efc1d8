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
        Self::InstructionTooLarge { found, limit, .. } => Reason::InstructionTooLarge.allowed(limit).found(found),
    }
    Encoding => RequestMalformed,
    Malformed | OtherFormat => HloMalformed,
    InvalidModule => ModuleInvalid,
    Fusion | OtherSlots => ProgramNotPrepared,
    ProgramWithoutModule => ModuleRequired,
    WrongSource => GraphTaskMismatch,
    FeatureSetName | SetDescription | InstanceTooLong => FieldInvalid,
    SetDiffers => FeatureSetMismatch,
    Empty => GraphEmpty,
    DuplicateInstruction | DuplicateComputation => DuplicateId,
    UnknownOperand => UnknownOperand,
    UnknownCallee => UnknownCallee,
    UnknownEdgeNode => UnknownNode,
    Cycle => GraphCycle,
    TensorTooLarge => TensorTooLarge,
    UnknownConfigurableNode | DuplicateConfigurableNode | ConfigurableKernel => ConfigurableNodesInvalid,
    ArrayLength | FeatureNotFinite | FeatureTooLarge | NodeFeatures | ColumnNames | WrongColumns => FeaturesInvalid,
    ReversedEdge | FeatureImpossible | PadValue => FeaturesInvalid,
}

describe! { ConfigurationError:
    {
        Self::TooMany { found, limit } => too_many(LimitKind::Configs).found(found).allowed(limit),
        Self::TooManyEntries { configs, slots, limit } => {
            too_many(LimitKind::ConfigEntries).found(configs.saturating_mul(*slots)).allowed(limit)
        },
        Self::TooLong { found, limit, .. } => Reason::ListTooLong.allowed(limit).found(found),
    }
    Malformed | SeveralForms | DenseAndTable => RequestMalformed,
    Empty => ConfigsEmpty,
    WrongTask => GraphTaskMismatch,
    NothingToConfigure | NothingToFuse => NothingToConfigure,
    NotConfigurable | NotFusible | NoSuchSlot => NodeNotConfigurable,
    SetTwice => NodeSetTwice,
    WrongCount | WrongColumns | ParameterCount => WrongCount,
    DimensionTwice | NoSuchDimension => LayoutInvalid,
    Bound | TileTooLarge | OutOfRange | NotWhole | UnusedBits | NoColumns | NotFinite | NotBounds => ValueOutOfRange,
    IndexOutsideTable => IndexOutOfRange,
}

/// A limit of a setting is exceeded.
fn too_many(kind: LimitKind) -> Refusal<'static> {
    match kind {
        LimitKind::Nodes => Reason::TooManyNodes.limit("--max-nodes"),
        LimitKind::Edges => Reason::TooManyEdges.limit("--max-nodes"),
        LimitKind::Configs => Reason::TooManyConfigs.limit("--max-configs"),
        LimitKind::ConfigEntries => Reason::TooManyConfigEntries.limit("--max-config-entries"),
    }
}

/// The reasons of the same mistakes in a serialized module, and of limits that only text has.
impl Refused for TextError {
    fn refusal(&self) -> Refusal<'_> {
        match self {
            Self::ListTooLong { limit } => Reason::InstructionTooLarge.allowed(limit),
            Self::TooDeep { limit } => Reason::NestingTooDeep.allowed(limit),
            Self::InvalidInstruction { .. } => Reason::ModuleInvalid.into(),
            Self::UnknownOperand { .. } => Reason::UnknownOperand.into(),
            Self::UnknownComputation { .. } => Reason::UnknownCallee.into(),
            Self::DuplicateInstruction { .. } | Self::DuplicateComputation { .. } => {
                Reason::DuplicateId.into()
            }
            // The rest are mistakes against the grammar.
            _ => Reason::HloMalformed.into(),
        }
    }
}
