//! Reason, and the field to blame, of every error.

use hlorank_graph::{ConfigurationError, GraphError, LimitKind, TextError};

use super::{delivery_error::DeliveryError, reason::Reason};
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
    pub(super) const fn at(reason: Reason, field: &'a str) -> Self {
        let field = Some(field);
        Self { reason, field }
    }
}

impl Classify for CallError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::GraphNotCached { .. } => Class::of(Reason::GraphNotCached),
            Self::GraphBytes { field, .. } => Class::at(Reason::GraphTooLarge, field),
            Self::Graph(error) => Class::at(graph_reason(error), "graph"),
            Self::Configuration { field, source } => Class::at(configuration_reason(source), field),
            Self::Measurement(error) => error.classify(),
            Self::Store(error) => error.classify(),
            Self::StreamTooLong { .. } => Class::at(Reason::StreamTooLong, "configs"),
            Self::DeadlineExceeded { .. } => Class::of(Reason::DeadlineExceeded),
            Self::PartialUnsupported { .. } => {
                Class::at(Reason::PartialUnsupported, "allow_partial")
            }
            Self::SourceUnsupported { .. } => Class::at(Reason::SourceUnsupported, "source"),
            Self::ExplainUnsupported { .. } => Class::at(Reason::ExplainUnsupported, "explain_top"),
            Self::Select(error) => error.classify(),
            Self::Engine(error) => error.classify(),
            Self::Worker(_) => Class::of(Reason::WorkerFailed),
        }
    }
}

impl Classify for SelectError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::WrongTask { .. } => Class::at(Reason::ModelTaskMismatch, "model"),
            Self::OtherFeatureSet { .. } => Class::at(Reason::FeatureSetMismatch, "model"),
            Self::UnknownFeatureSet { .. } => {
                Class::at(Reason::FeatureSetUnknown, "graph.feature_graph.feature_set")
            }
            _ => Class::of(Reason::ModelNotFound),
        }
    }
}

impl Classify for AdmissionError {
    fn classify(&self) -> Class<'_> {
        Class::of(match self.limit() {
            AdmissionLimit::Server(_) => Reason::Overloaded,
            AdmissionLimit::Client(_) => Reason::ClientLimit,
        })
    }
}

impl Classify for HostError {
    fn classify(&self) -> Class<'_> {
        let reason = match self {
            Self::NotAllowed { .. } => Reason::HostNotAllowed,
            Self::Missing | Self::Invalid { .. } => Reason::HostInvalid,
        };
        Class::at(reason, "host")
    }
}

impl Classify for TokenError {
    fn classify(&self) -> Class<'_> {
        Class::of(match self {
            Self::Missing | Self::Unreadable => Reason::TokenMissing,
            Self::Unknown => Reason::TokenUnknown,
            Self::ScopeMissing { .. } => Reason::ScopeMissing,
            Self::UnknownMethod { .. } => Reason::MethodUnknown,
        })
    }
}

impl Classify for MeasurementError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::TooMany { field, .. } => Class::at(Reason::TooManyMeasurements, field),
            Self::WrongCount { field, .. } => Class::at(Reason::WrongCount, field),
            Self::OutOfRange { field, .. } => Class::at(Reason::ValueOutOfRange, field),
        }
    }
}

impl Classify for StoreError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::Off => Class::of(Reason::MeasurementsOff),
            Self::Changed { .. } => Class::at(Reason::MeasurementChanged, "ids"),
            Self::Full { .. } | Self::ShareFull { .. } => Class::of(Reason::MeasurementsFull),
            Self::Failed(_) => Class::of(Reason::MeasurementsFailed),
        }
    }
}

impl Classify for EngineError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::PadUnknown { .. } => Class::at(Reason::PadUnknown, "graph.features"),
            Self::NothingKept { .. } => Class::at(Reason::NothingToConfigure, "graph"),
            Self::GraphTooLarge { .. } => Class::at(Reason::GraphTooLarge, "graph"),
            Self::TooManyRows(_) => Class::at(Reason::TooManyRows, "configs"),
            Self::QueueFull { .. } => Class::of(Reason::QueueFull),
            Self::MemoryFull(_) => Class::of(Reason::MemoryFull),
            Self::DeadlineTooShort { .. } => Class::of(Reason::DeadlineTooShort),
            Self::InvalidOutput { .. } => Class::of(Reason::ModelOutputInvalid),
            Self::Model(_) => Class::of(Reason::ModelFailed),
            Self::Worker(_) => Class::of(Reason::WorkerFailed),
        }
    }
}

impl Classify for DeliveryError {
    fn classify(&self) -> Class<'_> {
        Class::of(match self {
            Self::Encoding { header, .. } => {
                return Class::at(Reason::CompressionUnsupported, header);
            }
            // The place `.` is the whole message.
            Self::Json { field, .. } if field != "." => {
                return Class::at(Reason::RequestMalformed, field);
            }
            Self::TooLarge { .. }
            | Self::DecompressedTooLarge { .. }
            | Self::RatioTooLarge { .. } => Reason::MessageTooLarge,
            Self::Broken { .. } => Reason::RequestBroken,
            Self::Ahead { .. } => Reason::StreamAhead,
            Self::Flag { .. }
            | Self::Http { .. }
            | Self::NoEncoding
            | Self::Truncated
            | Self::Compression { .. }
            | Self::Json { .. }
            | Self::TooManyFields { .. } => Reason::RequestMalformed,
            Self::Late { .. } => Reason::MessageLate,
            Self::Idle { .. } => Reason::StreamIdle,
        })
    }
}

impl Classify for AdminError {
    fn classify(&self) -> Class<'_> {
        match self {
            Self::UnknownModel { .. } | Self::UnknownVersion { .. } => {
                Class::of(Reason::ModelNotFound)
            }
            Self::Rejected { .. } => Class::of(Reason::ModelRejected),
            Self::NoOlderVersion { .. } => Class::of(Reason::NoOlderVersion),
            Self::ServesAlready { .. } => Class::at(Reason::ServesAlready, "version"),
            Self::NothingServes { .. } => Class::of(Reason::NothingServes),
            Self::Superseded { .. } => Class::of(Reason::Overtaken),
            Self::Policy(_) | Self::Scan(ScanError::Policy(_)) => Class::of(Reason::PolicyNotKept),
            Self::Scan(ScanError::Folder { .. }) => Class::of(Reason::ModelsUnreadable),
            Self::Stopping => Class::of(Reason::Stopping),
            Self::Failed => Class::of(Reason::WorkerFailed),
        }
    }
}

/// The reason of an error in a graph. Every error is named, so that a new one needs a reason to
/// compile.
fn graph_reason(error: &GraphError) -> Reason {
    match error {
        GraphError::Encoding { .. } => Reason::RequestMalformed,
        GraphError::Malformed { .. } | GraphError::OtherFormat { .. } => Reason::HloMalformed,
        GraphError::InvalidModule { .. } => Reason::ModuleInvalid,
        GraphError::Text { source, .. } => text_reason(source),
        GraphError::Fusion(_) | GraphError::OtherSlots { .. } => Reason::ProgramNotPrepared,
        GraphError::ProgramWithoutModule => Reason::ModuleRequired,
        GraphError::WrongSource { .. } => Reason::GraphTaskMismatch,
        GraphError::FeatureSetName
        | GraphError::SetDescription(_)
        | GraphError::InstanceTooLong { .. } => Reason::FieldInvalid,
        GraphError::SetDiffers { .. } => Reason::FeatureSetMismatch,
        GraphError::Empty => Reason::GraphEmpty,
        GraphError::DuplicateInstruction { .. } | GraphError::DuplicateComputation { .. } => {
            Reason::DuplicateId
        }
        GraphError::UnknownOperand { .. } => Reason::UnknownOperand,
        GraphError::UnknownCallee { .. } => Reason::UnknownCallee,
        GraphError::UnknownEdgeNode { .. } => Reason::UnknownNode,
        GraphError::Cycle { .. } => Reason::GraphCycle,
        GraphError::TooMany {
            kind: LimitKind::Edges,
            ..
        } => Reason::TooManyEdges,
        GraphError::TooMany { .. } => Reason::TooManyNodes,
        GraphError::InstructionTooLarge { .. } => Reason::InstructionTooLarge,
        GraphError::TensorTooLarge { .. } => Reason::TensorTooLarge,
        GraphError::UnknownConfigurableNode { .. }
        | GraphError::DuplicateConfigurableNode { .. }
        | GraphError::ConfigurableKernel { .. } => Reason::ConfigurableNodesInvalid,
        GraphError::ArrayLength { .. }
        | GraphError::FeatureNotFinite { .. }
        | GraphError::FeatureTooLarge { .. }
        | GraphError::NodeFeatures { .. }
        | GraphError::ColumnNames { .. }
        | GraphError::WrongColumns { .. }
        | GraphError::ReversedEdge { .. }
        | GraphError::FeatureImpossible { .. }
        | GraphError::PadValue { .. } => Reason::FeaturesInvalid,
    }
}

/// The reasons of the same mistakes in a serialized module, and of limits that only text has.
fn text_reason(error: &TextError) -> Reason {
    match error {
        TextError::ListTooLong { .. } => Reason::InstructionTooLarge,
        TextError::TooDeep { .. } => Reason::NestingTooDeep,
        TextError::InvalidInstruction { .. } => Reason::ModuleInvalid,
        TextError::UnknownOperand { .. } => Reason::UnknownOperand,
        TextError::UnknownComputation { .. } => Reason::UnknownCallee,
        TextError::DuplicateInstruction { .. } | TextError::DuplicateComputation { .. } => {
            Reason::DuplicateId
        }
        // The rest are mistakes against the grammar.
        _ => Reason::HloMalformed,
    }
}

fn configuration_reason(error: &ConfigurationError) -> Reason {
    match error {
        ConfigurationError::Malformed { .. }
        | ConfigurationError::SeveralForms
        | ConfigurationError::DenseAndTable => Reason::RequestMalformed,
        ConfigurationError::Empty => Reason::ConfigsEmpty,
        ConfigurationError::TooMany { .. } => Reason::TooManyConfigs,
        ConfigurationError::TooManyEntries { .. } => Reason::TooManyConfigEntries,
        ConfigurationError::WrongTask { .. } => Reason::GraphTaskMismatch,
        ConfigurationError::NothingToConfigure | ConfigurationError::NothingToFuse => {
            Reason::NothingToConfigure
        }
        ConfigurationError::NotConfigurable { .. }
        | ConfigurationError::NotFusible { .. }
        | ConfigurationError::NoSuchSlot { .. } => Reason::NodeNotConfigurable,
        ConfigurationError::SetTwice { .. } => Reason::NodeSetTwice,
        ConfigurationError::WrongCount { .. }
        | ConfigurationError::WrongColumns { .. }
        | ConfigurationError::ParameterCount { .. } => Reason::WrongCount,
        ConfigurationError::TooLong { .. } => Reason::ListTooLong,
        ConfigurationError::DimensionTwice { .. } | ConfigurationError::NoSuchDimension { .. } => {
            Reason::LayoutInvalid
        }
        ConfigurationError::Bound { .. }
        | ConfigurationError::TileTooLarge { .. }
        | ConfigurationError::OutOfRange { .. }
        | ConfigurationError::NotWhole { .. }
        | ConfigurationError::UnusedBits { .. }
        | ConfigurationError::NoColumns
        | ConfigurationError::NotFinite { .. }
        | ConfigurationError::NotBounds { .. } => Reason::ValueOutOfRange,
        ConfigurationError::IndexOutsideTable { .. } => Reason::IndexOutOfRange,
    }
}
