//! The words of HLO text: tokens, element types and shapes. The folder `text` reads modules of them.

mod bytes;
mod element_type;
mod head;
mod lexer;
mod shape;

pub(crate) use self::{
    bytes::{is_hlo_text, text_of},
    element_type::{BUFFER, OPAQUE, PRED, S32, TOKEN, TUPLE, U32, complex_of, has_layout, real_of},
    head::head,
    lexer::{Lexer, MAX_DEPTH},
    shape::{UNBOUNDED, is_permutation, row_major, shape, shape_if_next, total_size, tuple_of},
};
