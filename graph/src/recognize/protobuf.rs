//! Tells files and protobuf messages apart, messages by the fields that they have, also those of messages inside. A message
//! that is cut off counts as what it begins as.

use std::fmt;

use hlorank_proto::tpu_graphs::ConfigProfile;
use prost::{
    Message as _,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};

use crate::{
    Task,
    syntax::is_hlo_text,
    wire::{Fields, Payload, bytes_field},
};

/// Maximum number of fields of one message that are looked at.
const MAX_FIELDS: usize = 1 << 16;

/// Maximum number of messages around a module.
const MAX_WRAPPERS: usize = 3;

/// A field of a message.
#[derive(Clone, Copy)]
enum Field<'a> {
    Bytes(&'a [u8]),
    Number,
}

/// Iterates over the fields of a message; ends where it is not readable. The last field may be cut off.
struct ReadableFields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ReadableFields<'a> {
    type Item = (u32, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (number, wire_type) = decode_key(&mut self.rest).ok()?;
        if wire_type != WireType::LengthDelimited {
            skip_field(wire_type, number, &mut self.rest, DecodeContext::default()).ok()?;
            return Some((number, Field::Number));
        }
        let length = usize::try_from(decode_varint(&mut self.rest).ok()?).unwrap_or(usize::MAX);
        // A field that is longer than the rest was cut off, so the rest is its beginning.
        let (bytes, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        Some((number, Field::Bytes(bytes)))
    }
}

/// Returns the module in a message: an `HloModuleProto` itself, or the one inside an `HloProto`, an `HloSnapshot` or another
/// message whose first field leads to it. Returns the bytes themselves if they hold none.
pub(crate) fn inner_module(bytes: &[u8]) -> &[u8] {
    let mut inner = bytes;
    // No message of XLA nests a module deeper, and each level is a search through the message.
    for _ in 0..MAX_WRAPPERS {
        match first_bytes(inner, 1) {
            Some(next) if !is_module(inner) => inner = next,
            _ => break,
        }
    }
    match first_bytes(bytes, 1) {
        _ if is_module(inner) => inner,
        // A broken module in an `HloProto`. The keys of the first fields of a message are control characters.
        Some(message) if message.iter().any(u8::is_ascii_control) => message,
        _ => bytes,
    }
}

/// Returns whether a message is a module or holds one.
pub(crate) fn holds_module(bytes: &[u8]) -> bool {
    is_module(inner_module(bytes))
}

/// Returns whether a message is an `HloModuleProto`: it has a computation with instructions, whose opcode is text.
pub(super) fn is_module(bytes: &[u8]) -> bool {
    // Field 3 are the computations, 2 their instructions, and 2 the opcode. Field 1 is the name of
    // the module.
    has_path(bytes, "3.2.2") && first_bytes(bytes, 1).is_none_or(is_printable)
}

/// Returns whether bytes are readable as one whole message, with fields that messages have.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    let fields: Vec<_> = crate::wire::Fields::new(bytes).take(MAX_FIELDS).collect();
    // Random bytes often are readable as fields, but seldom as fields with small numbers alone.
    let plausible =
        |field: &Result<(u32, _), _>| field.as_ref().is_ok_and(|(number, _)| *number < 10_000);
    !fields.is_empty() && bytes.len() > 2 && fields.iter().all(plausible)
}

/// Returns whether a message has a field at a path of numbers, such as `1.2`: a text, bytes if the path ends with `*`, or a
/// number if it ends with `#`.
pub(super) fn has_path(bytes: &[u8], path: &str) -> bool {
    let found = field_at(bytes, path.trim_end_matches(['*', '#']));
    match (found, path.as_bytes().last()) {
        (Some(Field::Number), Some(b'#')) | (Some(Field::Bytes(_)), Some(b'*')) => true,
        (Some(Field::Bytes(text)), Some(b'0'..=b'9')) => !text.is_empty() && is_printable(text),
        _ => false,
    }
}

/// Returns the field at a path of numbers, by the first message of each number on the way.
fn field_at<'a>(bytes: &'a [u8], path: &str) -> Option<Field<'a>> {
    let numbers = path.split('.').filter_map(|number| number.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    let last = numbers.pop()?;
    let message = numbers.into_iter().try_fold(bytes, first_bytes)?;
    fields(message)
        .find(|(number, _)| *number == last)
        .map(|(_, field)| field)
}

fn fields(message: &[u8]) -> impl Iterator<Item = (u32, Field<'_>)> {
    ReadableFields { rest: message }.take(MAX_FIELDS)
}

fn first_bytes(message: &[u8], number: u32) -> Option<&[u8]> {
    fields(message).find_map(|(found, field)| match field {
        Field::Bytes(bytes) if found == number => Some(bytes),
        _ => None,
    })
}

fn is_printable(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_control) && std::str::from_utf8(text).is_ok()
}

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
    pub(crate) fn recognize(bytes: &[u8]) -> Option<Self> {
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
    let mut fields = Fields::new(bytes).map_while(Result::ok);
    is_kernel
        && fields.all(|field| matches!(field, (1, _)))
        && (is_tuning(first) || !has_others(first))
}

/// Returns whether a message has fields beside a module.
fn has_others(message: &[u8]) -> bool {
    Fields::new(message)
        .map_while(Result::ok)
        .any(|(number, _)| number != 1)
}

/// Returns whether a message around a module is a `ModuleTuningData`: it has a fingerprint, which is a number, or
/// configurable nodes, or its field 3 is a run. An `HloProto` has a buffer assignment there, and
/// `HloModuleProtoWithConfig` a message in place of the fingerprint.
fn is_tuning(bytes: &[u8]) -> bool {
    Fields::new(bytes)
        .map_while(Result::ok)
        .any(|field| match field {
            (2, Payload::Varint(_)) | (4, _) => true,
            (3, Payload::Bytes(run)) => {
                ConfigProfile::decode(run).is_ok_and(|run| run.config.is_some())
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_module_is_looked_for_in_a_message_and_not_in_its_name() {
        let broken = b"\x0a\x04name\x1a\x7f";
        assert_eq!(inner_module(broken), broken);
        let wrapped = b"\x0a\x06\x0a\x04name";
        assert_eq!(inner_module(wrapped), b"\x0a\x04name");
    }
}
