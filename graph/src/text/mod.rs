//! HLO text, as XLA prints it. Each instruction is read into the message that the featurizer takes.

mod add_pending;
mod asynchronous;
mod attributes;
mod bytes;
mod callees;
mod computation;
mod derived_shape;
mod element_type;
mod head;
mod instruction;
mod lexer;
mod module;
mod operand;
mod pending;
mod post_order;
mod shape;
mod shapes;
mod window;

pub(crate) use self::{
    bytes::{is_hlo_text, text_of},
    head::head,
    module::module_name,
};
