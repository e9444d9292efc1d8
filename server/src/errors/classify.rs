//! Reason of every error, and the field to blame, as one table for each type of error. A variant without a line does not
//! compile.

use hlorank_graph::{ConfigurationError, GraphError, LimitKind, TextError};

use super::{DeliveryError, reason::Reason};
use crate::{
    admission::{AdmissionError, AdmissionLimit},
    call::{CallError, MeasurementError},
    engine::EngineError,
    registry::{AdminError, ScanError, SelectError},
    security::{HostError, TokenError},
    store::StoreError,
};

/// How clients see an error. The reason decides the code.
#[derive(Clone, Copy)]
pub(super) struct Class<'a> {
    pub(super) reason: Reason,
    /// The field or header to blame.
    pub(super) field: Option<&'a str>,
}

/// An error that can end a call.
pub(super) trait Classify {
    /// Returns the class of the error.
    fn classify(&self) -> Class<'_>;
}

impl<'a> Class<'a> {
    /// The class of an error for which no field is to blame.
    pub(super) const fn of(reason: Reason) -> Self {
        let field = None;
        Self { reason, field }
    }

    /// The class of an error in a field.
    pub(super) const fn at(self, field: &'a str) -> Self {
        let field = Some(field);
        Self { field, ..self }
    }
}

/// Classifies a type of error: first the variants whose class depends on what they hold, then those with one reason.
macro_rules! classify {
    ($error:ident: $({ $($held:pat $(if $guard:expr)? => $class:expr,)+ })? $($($variant:ident)|+ => $reason:ident $(at $field:literal)?,)*) => {
        impl Classify for $error {
            fn classify(&self) -> Class<'_> {
                match self {
                    $($($held $(if $guard)? => $class,)+)?
                    $($(Self::$variant { .. })|+ => Class::of(Reason::$reason)$(.at($field))?,)*
                }
            }
        }
    };
}

pub(super) use classify;

classify! { CallError:
    {
        Self::GraphBytes { field, .. } => Class::of(Reason::GraphTooLarge).at(field),
        Self::Graph(error) => error.classify().at("graph"),
        Self::Configuration { field, source } => source.classify().at(field),
        Self::Measurement(error) => error.classify(),
        Self::Store(error) => error.classify(),
        Self::Select(error) => error.classify(),
        Self::Engine(error) => error.classify(),
    }
    GraphNotCached => GraphNotCached,
    StreamTooLong => StreamTooLong at "configs",
    DeadlineExceeded => DeadlineExceeded,
    PartialUnsupported => PartialUnsupported at "allow_partial",
    SourceUnsupported => SourceUnsupported at "source",
    ExplainUnsupported => ExplainUnsupported at "explain_top",
    Worker => WorkerFailed,
}

classify! { SelectError:
    UnknownName | NotLoaded | NoCanary | SeveralOfFeatureSet => ModelNotFound,
    WrongTask => ModelTaskMismatch at "model",
    OtherFeatureSet => FeatureSetMismatch at "model",
    UnknownFeatureSet => FeatureSetUnknown at "graph.feature_graph.feature_set",
}

classify! { HostError:
    NotAllowed => HostNotAllowed,
    Missing | Invalid => HostInvalid,
}

classify! { TokenError:
    Missing | Unreadable => TokenMissing,
    Unknown => TokenUnknown,
    ScopeMissing => ScopeMissing,
    UnknownMethod => MethodUnknown,
}

classify! { MeasurementError:
    {
        Self::TooMany { field, .. } => Class::of(Reason::TooManyMeasurements).at(field),
        Self::WrongCount { field, .. } => Class::of(Reason::WrongCount).at(field),
        Self::OutOfRange { field, .. } => Class::of(Reason::ValueOutOfRange).at(field),
    }
}

classify! { StoreError:
    Off => MeasurementsOff,
    Changed => MeasurementChanged at "ids",
    Full | ShareFull => MeasurementsFull,
    Failed => MeasurementsFailed,
}

classify! { EngineError:
    PadUnknown => PadUnknown at "graph.features",
    NothingKept => NothingToConfigure at "graph",
    GraphTooLarge => GraphTooLarge at "graph",
    TooManyRows => TooManyRows at "configs",
    QueueFull => QueueFull,
    MemoryFull => MemoryFull,
    DeadlineTooShort => DeadlineTooShort,
    InvalidOutput => ModelOutputInvalid,
    Model => ModelFailed,
    Worker => WorkerFailed,
}

classify! { DeliveryError:
    {
        Self::Encoding { header, .. } => Class::of(Reason::CompressionUnsupported).at(header),
        // The place `.` is the whole message.
        Self::Json { field, .. } if field != "." => Class::of(Reason::RequestMalformed).at(field),
    }
    TooLarge | DecompressedTooLarge | RatioTooLarge => MessageTooLarge,
    Broken => RequestBroken,
    Ahead => StreamAhead,
    Flag | Http | NoEncoding | Truncated | Compression | Json | TooManyFields => RequestMalformed,
    Late => MessageLate,
    Idle => StreamIdle,
}

classify! { AdminError:
    { Self::Scan(ScanError::Policy(_)) => Class::of(Reason::PolicyNotKept), }
    UnknownModel | UnknownVersion => ModelNotFound,
    Rejected => ModelRejected,
    NoOlderVersion => NoOlderVersion,
    ServesAlready => ServesAlready at "version",
    NothingServes => NothingServes,
    Superseded => Overtaken,
    Policy => PolicyNotKept,
    Scan => ModelsUnreadable,
    Stopping => Stopping,
    Failed => WorkerFailed,
}

classify! { GraphError:
    {
        Self::Text { source, .. } => source.classify(),
        Self::TooMany { kind: LimitKind::Edges, .. } => Class::of(Reason::TooManyEdges),
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
    TooMany => TooManyNodes,
    InstructionTooLarge => InstructionTooLarge,
    TensorTooLarge => TensorTooLarge,
    UnknownConfigurableNode | DuplicateConfigurableNode | ConfigurableKernel => ConfigurableNodesInvalid,
    ArrayLength | FeatureNotFinite | FeatureTooLarge | NodeFeatures | ColumnNames | WrongColumns => FeaturesInvalid,
    ReversedEdge | FeatureImpossible | PadValue => FeaturesInvalid,
}

classify! { ConfigurationError:
    Malformed | SeveralForms | DenseAndTable => RequestMalformed,
    Empty => ConfigsEmpty,
    TooMany => TooManyConfigs,
    TooManyEntries => TooManyConfigEntries,
    WrongTask => GraphTaskMismatch,
    NothingToConfigure | NothingToFuse => NothingToConfigure,
    NotConfigurable | NotFusible | NoSuchSlot => NodeNotConfigurable,
    SetTwice => NodeSetTwice,
    WrongCount | WrongColumns | ParameterCount => WrongCount,
    TooLong => ListTooLong,
    DimensionTwice | NoSuchDimension => LayoutInvalid,
    Bound | TileTooLarge | OutOfRange | NotWhole | UnusedBits | NoColumns | NotFinite | NotBounds => ValueOutOfRange,
    IndexOutsideTable => IndexOutOfRange,
}

impl Classify for AdmissionError {
    fn classify(&self) -> Class<'_> {
        Class::of(match self.limit() {
            AdmissionLimit::Server(_) => Reason::Overloaded,
            AdmissionLimit::Client(_) => Reason::ClientLimit,
        })
    }
}

/// The reasons of the same mistakes in a serialized module, and of limits that only text has.
impl Classify for TextError {
    fn classify(&self) -> Class<'_> {
        Class::of(match self {
            Self::ListTooLong { .. } => Reason::InstructionTooLarge,
            Self::TooDeep { .. } => Reason::NestingTooDeep,
            Self::InvalidInstruction { .. } => Reason::ModuleInvalid,
            Self::UnknownOperand { .. } => Reason::UnknownOperand,
            Self::UnknownComputation { .. } => Reason::UnknownCallee,
            Self::DuplicateInstruction { .. } | Self::DuplicateComputation { .. } => {
                Reason::DuplicateId
            }
            // The rest are mistakes against the grammar.
            _ => Reason::HloMalformed,
        })
    }
}
