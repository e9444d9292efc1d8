//! HLO text, as XLA prints it. Each instruction is read into the message that the featurizer takes.

mod asynchronous;
mod attributes;
mod computation;
mod derived_shape;
mod instruction;
mod module;
mod shapes;

pub(crate) use self::module::module_name;
