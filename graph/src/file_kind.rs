use std::fmt;

use hlorank_proto::tpu_graphs::ConfigProfile;
use prost::Message as _;

use crate::{
    Task,
    module::{holds_computations, wrapped_message},
    text,
    wire::{Fields, Payload},
};

/// The formats of files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// HLO text.
    HloText,
    /// `xla.HloModuleProto`.
    HloModule,
    /// `xla.HloProto`.
    HloProto,
    /// `tpu_graphs.ModuleTuningData`: a layout graph, or one kernel.
    ModuleTuningData,
    /// `tpu_graphs.TuningData`: kernels.
    TuningData,
    /// `TpuGraphs` npz of a graph with configurations of this task.
    ConfigurationNpz(Task),
    /// An npz of features without configurations.
    FeatureNpz,
}

impl fmt::Display for FileKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::HloText => "HLO text",
            Self::HloModule => "HloModuleProto",
            Self::HloProto => "HloProto",
            Self::ModuleTuningData => "ModuleTuningData",
            Self::TuningData => "TuningData",
            Self::ConfigurationNpz(task) => return write!(formatter, "{task} npz"),
            Self::FeatureNpz => "feature npz",
        };
        formatter.write_str(name)
    }
}

impl FileKind {
    /// Recognizes text by its first word, and protobuf messages by the content of their field 1. Returns `None` for any
    /// other content.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        if text::is_hlo_text(bytes) {
            return Some(Self::HloText);
        }
        match wrapped_message(bytes) {
            Some(inner) if wrapped_message(inner).is_some() => Some(Self::TuningData),
            Some(_) if is_tuning(bytes) => Some(Self::ModuleTuningData),
            Some(_) => Some(Self::HloProto),
            None => holds_computations(bytes).then_some(Self::HloModule),
        }
    }
}

/// Returns whether a message around a module is a `ModuleTuningData` and not an `HloProto`: it has a fingerprint or
/// configurable nodes, or its field 3 is a run and not a buffer assignment.
fn is_tuning(bytes: &[u8]) -> bool {
    Fields::of(bytes).map_while(Result::ok).any(|field| match field {
        (2 | 4, _) => true,
        (3, Payload::Bytes(run)) => ConfigProfile::decode(run).is_ok_and(|run| run.config.is_some()),
        _ => false,
    })
}
