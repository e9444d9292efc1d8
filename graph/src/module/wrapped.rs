use crate::{
    GraphError,
    wire::{Fields, bytes_field},
};

/// Returns the module inside an `HloProto`, or the bytes themselves if they are no `HloProto`.
pub(crate) fn inner_module(bytes: &[u8]) -> Result<&[u8], GraphError> {
    let Some(module) = wrapped_message(bytes) else { return Ok(bytes) };
    // The other fields are not read, but a message that is cut off inside them is an error.
    match Fields::of(bytes).find_map(Result::err) {
        None => Ok(module),
        Some(error) => {
            Err(GraphError::Malformed { place: "the HloProto".to_owned(), detail: error.to_string() })
        }
    }
}

/// Returns field 1 of a message if it holds a message and not the name of a module.
///
/// The keys of the first fields of a message are control characters, which no name contains.
pub(crate) fn wrapped_message(bytes: &[u8]) -> Option<&[u8]> {
    bytes_field(bytes, 1).filter(|inner| inner.iter().any(u8::is_ascii_control))
}

/// Returns whether the readable part of a message has a field 3, where an `HloModuleProto` holds its computations.
pub(crate) fn holds_computations(message: &[u8]) -> bool {
    bytes_field(message, 3).is_some()
}
