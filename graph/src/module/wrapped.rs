use crate::{
    GraphError,
    wire::{Fields, bytes_field},
};

/// The module inside an `HloProto`, or the bytes themselves.
pub(crate) fn inner_module(bytes: &[u8]) -> Result<&[u8], GraphError> {
    let Some(module) = wrapped_message(bytes) else { return Ok(bytes) };
    // What stands beside the module is not read, but a message that is cut there is cut.
    match Fields::of(bytes).find_map(Result::err) {
        None => Ok(module),
        Some(error) => {
            Err(GraphError::Malformed { place: "the HloProto".to_owned(), detail: error.to_string() })
        }
    }
}

/// What field 1 of a message holds, where that is a message and not the name of a module.
///
/// Every key of a message's first fields is a control character, which no name has.
pub(crate) fn wrapped_message(bytes: &[u8]) -> Option<&[u8]> {
    bytes_field(bytes, 1).filter(|inner| inner.iter().any(u8::is_ascii_control))
}

/// Whether a message has, as far as it can be read, a computation where an `HloModuleProto` has them.
pub(crate) fn holds_computations(message: &[u8]) -> bool {
    bytes_field(message, 3).is_some()
}
