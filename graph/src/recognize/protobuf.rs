//! Tells protobuf messages apart by the fields that they have, also those of messages inside. A message that is cut off
//! counts as what it begins as.

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

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
    let fields: Vec<_> = crate::wire::Fields::of(bytes).take(MAX_FIELDS).collect();
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
