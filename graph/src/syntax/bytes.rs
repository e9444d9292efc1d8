use super::lexer::{Lexer, error_in};
use crate::{GraphError, TextError};

/// Returns whether a file is HLO text. HLO text begins with `HloModule`, and no protobuf of a module does.
pub(crate) fn is_hlo_text(bytes: &[u8]) -> bool {
    Lexer::new(valid_start(bytes)).word() == "HloModule"
}

/// Decodes UTF-8.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, GraphError> {
    // The error counts lines and columns in the valid part, which reaches up to the byte at fault.
    std::str::from_utf8(bytes)
        .map_err(|error| error_in(valid_start(bytes), error.valid_up_to(), TextError::NotUtf8))
}

/// Returns the bytes before the first one that is not UTF-8.
fn valid_start(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
