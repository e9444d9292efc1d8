//! The words of HLO text: tokens, element types and shapes. The folder `text` reads modules of them.

mod lexer;
mod shape;

pub(crate) use self::{
    lexer::{Lexer, MAX_DEPTH, TABLES, is_hlo_text, text_of},
    shape::{
        BUFFER, MAX_RANK, OPAQUE, PRED, S32, TOKEN, TUPLE, U32, UNBOUNDED, complex_of, has_layout,
        head, is_element_type, is_permutation, real_of, row_major, shape, shape_if_next,
        total_size, tuple_of,
    },
};
