//! HLO text, as XLA prints it: read instruction by instruction into the messages that the featurizer takes.

mod asynchronous;
mod attributes;
mod callees;
mod computation;
mod element_type;
mod instruction;
mod lexer;
mod module;
mod post_order;
mod shape;
mod window;

pub(crate) use self::{
    instruction::head,
    module::{module_name, read},
};
use crate::{GraphError, TextError};

/// Whether a file is HLO text: it begins with `HloModule`, which no protobuf of a module does.
pub(crate) fn is_hlo_text(bytes: &[u8]) -> bool {
    let start = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let mut lexer = lexer::Lexer::new(start);
    lexer.word() == "HloModule"
}

/// The text that bytes are.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, GraphError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        lexer::error_in(valid, error.valid_up_to(), TextError::NotUtf8)
    })
}
