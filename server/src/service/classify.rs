//! Code, reason, and the field to blame of every error.

use hlorank_graph::{ConfigurationError, GraphError, LimitKind, TextError};
use tonic::Code::{
    self, FailedPrecondition, Internal, InvalidArgument, NotFound, ResourceExhausted,
};

use super::{delivery_error::DeliveryError, reason::Reason};
use crate::{
    admission::{AdmissionError, AdmissionLimit},
    call::{CallError, MeasurementError},
    engine::EngineError,
    registry::{AdminError, ScanError, SelectError},
    security::TokenError,
    store::StoreError,
};

/// Code, reason, and the field to blame.
pub(super) type Class = (Code, Reason, Option<&'static str>);

pub(super) fn call(error: &CallError) -> Class {
    match error {
        CallError::GraphNotCached { .. } => (FailedPrecondition, Reason::GraphNotCached, None),
        CallError::GraphBytes { field, .. } => {
            (InvalidArgument, Reason::GraphTooLarge, Some(field))
        }
        CallError::Graph(error) => (InvalidArgument, graph_reason(error), Some("graph")),
        CallError::Configuration { field, source } => {
            (InvalidArgument, configuration_reason(source), Some(field))
        }
        CallError::Measurement(error) => measurement(error),
        CallError::Store(error) => store(error),
        CallError::StreamTooLong { .. } => {
            (InvalidArgument, Reason::StreamTooLong, Some("configs"))
        }
        CallError::DeadlineExceeded { .. } => {
            (Code::DeadlineExceeded, Reason::DeadlineExceeded, None)
        }
        CallError::PartialUnsupported { .. } => (
            InvalidArgument,
            Reason::PartialUnsupported,
            Some("allow_partial"),
        ),
        CallError::SourceUnsupported { .. } => {
            (InvalidArgument, Reason::SourceUnsupported, Some("source"))
        }
        CallError::ExplainUnsupported { .. } => (
            InvalidArgument,
            Reason::ExplainUnsupported,
            Some("explain_top"),
        ),
        CallError::Select(SelectError::WrongTask { .. }) => {
            (InvalidArgument, Reason::ModelTaskMismatch, Some("model"))
        }
        CallError::Select(SelectError::OtherFeatureSet { .. }) => {
            (InvalidArgument, Reason::FeatureSetMismatch, Some("model"))
        }
        CallError::Select(SelectError::UnknownFeatureSet { .. }) => (
            NotFound,
            Reason::FeatureSetUnknown,
            Some("graph.feature_graph.feature_set"),
        ),
        CallError::Select(_) => (NotFound, Reason::ModelNotFound, None),
        CallError::Engine(error) => engine(error),
        CallError::Worker(_) => (Internal, Reason::WorkerFailed, None),
    }
}

pub(super) fn admission(error: &AdmissionError) -> Class {
    match error.limit() {
        AdmissionLimit::Server(_) => (ResourceExhausted, Reason::Overloaded, None),
        AdmissionLimit::Client(_) => (ResourceExhausted, Reason::ClientLimit, None),
    }
}

pub(super) fn token(error: &TokenError) -> Class {
    match error {
        TokenError::Missing | TokenError::Unreadable => {
            (Code::Unauthenticated, Reason::TokenMissing, None)
        }
        TokenError::Unknown => (Code::Unauthenticated, Reason::TokenUnknown, None),
        TokenError::ScopeMissing { .. } => (Code::PermissionDenied, Reason::ScopeMissing, None),
        TokenError::UnknownMethod { .. } => (Code::Unimplemented, Reason::MethodUnknown, None),
    }
}

fn measurement(error: &MeasurementError) -> Class {
    match error {
        MeasurementError::TooMany { field, .. } => {
            (InvalidArgument, Reason::TooManyMeasurements, Some(field))
        }
        MeasurementError::WrongCount { field, .. } => {
            (InvalidArgument, Reason::WrongCount, Some(field))
        }
        MeasurementError::OutOfRange { field, .. } => {
            (InvalidArgument, Reason::ValueOutOfRange, Some(field))
        }
    }
}

fn store(error: &StoreError) -> Class {
    match error {
        StoreError::Off => (FailedPrecondition, Reason::MeasurementsOff, None),
        StoreError::Changed { .. } => {
            (Code::AlreadyExists, Reason::MeasurementChanged, Some("ids"))
        }
        StoreError::Full { .. } | StoreError::ShareFull { .. } => {
            (ResourceExhausted, Reason::MeasurementsFull, None)
        }
        StoreError::Failed(_) => (Code::Unavailable, Reason::MeasurementsFailed, None),
    }
}

fn engine(error: &EngineError) -> Class {
    match error {
        EngineError::PadUnknown { .. } => (
            FailedPrecondition,
            Reason::PadUnknown,
            Some("graph.features"),
        ),
        EngineError::NothingKept { .. } => {
            (InvalidArgument, Reason::NothingToConfigure, Some("graph"))
        }
        EngineError::GraphTooLarge { .. } => {
            (InvalidArgument, Reason::GraphTooLarge, Some("graph"))
        }
        EngineError::TooManyRows(_) => (InvalidArgument, Reason::TooManyRows, Some("configs")),
        EngineError::QueueFull { .. } => (ResourceExhausted, Reason::QueueFull, None),
        EngineError::MemoryFull(_) => (ResourceExhausted, Reason::MemoryFull, None),
        EngineError::DeadlineTooShort { .. } => {
            (Code::DeadlineExceeded, Reason::DeadlineTooShort, None)
        }
        EngineError::InvalidOutput { .. } => (Internal, Reason::ModelOutputInvalid, None),
        EngineError::Model(_) => (Internal, Reason::ModelFailed, None),
        EngineError::Worker(_) => (Internal, Reason::WorkerFailed, None),
    }
}

pub(super) fn delivery(error: &DeliveryError) -> Class {
    match error {
        DeliveryError::TooLarge { .. }
        | DeliveryError::DecompressedTooLarge { .. }
        | DeliveryError::RatioTooLarge { .. } => (ResourceExhausted, Reason::MessageTooLarge, None),
        DeliveryError::Encoding { .. } => {
            (Code::Unimplemented, Reason::CompressionUnsupported, None)
        }
        // Becomes `CANCELLED` behind tonic: see `transport`.
        DeliveryError::Broken { .. } => (InvalidArgument, Reason::RequestBroken, None),
        DeliveryError::Ahead { .. } => (ResourceExhausted, Reason::StreamAhead, None),
        DeliveryError::Flag { .. }
        | DeliveryError::Http { .. }
        | DeliveryError::NoEncoding
        | DeliveryError::Truncated
        | DeliveryError::Compression { .. }
        | DeliveryError::Json { .. }
        | DeliveryError::TooManyFields { .. } => (InvalidArgument, Reason::RequestMalformed, None),
        DeliveryError::Late { .. } => (Code::DeadlineExceeded, Reason::MessageLate, None),
        DeliveryError::Idle { .. } => (Code::DeadlineExceeded, Reason::StreamIdle, None),
    }
}

pub(super) fn admin(error: &AdminError) -> Class {
    match error {
        AdminError::UnknownModel { .. } | AdminError::UnknownVersion { .. } => {
            (NotFound, Reason::ModelNotFound, None)
        }
        AdminError::Rejected { .. } => (FailedPrecondition, Reason::ModelRejected, None),
        AdminError::NoOlderVersion { .. } => (FailedPrecondition, Reason::NoOlderVersion, None),
        AdminError::ServesAlready { .. } => {
            (FailedPrecondition, Reason::ServesAlready, Some("version"))
        }
        AdminError::NothingServes { .. } => (FailedPrecondition, Reason::NothingServes, None),
        AdminError::Superseded { .. } => (Code::Aborted, Reason::Overtaken, None),
        AdminError::Policy(_) | AdminError::Scan(ScanError::Policy(_)) => {
            (FailedPrecondition, Reason::PolicyNotKept, None)
        }
        AdminError::Scan(ScanError::Folder { .. }) => {
            (FailedPrecondition, Reason::ModelsUnreadable, None)
        }
        AdminError::Stopping => (Code::Unavailable, Reason::Stopping, None),
        AdminError::Failed => (Internal, Reason::WorkerFailed, None),
    }
}

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
