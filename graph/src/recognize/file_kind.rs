use std::fmt;

use hlorank_proto::tpu_graphs::ConfigProfile;
use prost::Message as _;

use super::protobuf::{holds_module, is_module};
use crate::{
    Task,
    syntax::is_hlo_text,
    wire::{Fields, Payload, bytes_field},
};

/// The formats of files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// HLO text: one module or several, also inside a log or a report.
    HloText,
    /// `xla.HloModuleProto`.
    HloModule,
    /// `xla.HloProto`, or another message around a module, such as `xla.HloSnapshot`.
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
    /// Recognizes text that begins with a module, and protobuf messages by the fields inside. Returns `None` for any other
    /// content.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        // A serialized module may have the name `HloModule`, and begins with a line feed.
        if is_module(bytes) {
            return Some(Self::HloModule);
        }
        if is_hlo_text(bytes) {
            return Some(Self::HloText);
        }
        // All other messages have their module, or the first of several, in field 1.
        let inner = bytes_field(bytes, 1)?;
        if is_tuning(bytes) && is_module(inner) {
            Some(Self::ModuleTuningData)
        } else if is_list_of_tuning(bytes, inner) {
            Some(Self::TuningData)
        } else {
            // This comes last, because tuning data holds a module in the same place.
            holds_module(bytes).then_some(Self::HloProto)
        }
    }
}

/// Returns whether a message is a `TuningData`: it has no other field than kernels, each a module with what was measured. An
/// `HloSnapshot` has the same nesting.
fn is_list_of_tuning(bytes: &[u8], first: &[u8]) -> bool {
    let is_kernel = bytes_field(first, 1).is_some_and(is_module);
    // Only the readable fields count, so a file that is cut off is recognized, and its reader
    // reports the fault.
    let mut fields = Fields::of(bytes).map_while(Result::ok);
    is_kernel
        && fields.all(|field| matches!(field, (1, _)))
        && (is_tuning(first) || !has_others(first))
}

/// Returns whether a message has fields beside a module.
fn has_others(message: &[u8]) -> bool {
    Fields::of(message)
        .map_while(Result::ok)
        .any(|(number, _)| number != 1)
}

/// Returns whether a message around a module is a `ModuleTuningData`: it has a fingerprint, which is a number, or
/// configurable nodes, or its field 3 is a run. An `HloProto` has a buffer assignment there, and
/// `HloModuleProtoWithConfig` a message in place of the fingerprint.
fn is_tuning(bytes: &[u8]) -> bool {
    Fields::of(bytes)
        .map_while(Result::ok)
        .any(|field| match field {
            (2, Payload::Varint(_)) | (4, _) => true,
            (3, Payload::Bytes(run)) => {
                ConfigProfile::decode(run).is_ok_and(|run| run.config.is_some())
            }
            _ => false,
        })
}
