//! HLO modules as nodes, and the reader of serialized modules. The folder `text` reads HLO text.

mod builder;
mod finish;
mod hlo_module;
mod nodes;
mod reader;
mod rules;

pub use self::hlo_module::{HloModule, NodeDescription};
pub(crate) use self::{
    builder::ModuleBuilder,
    nodes::{Nodes, Origin},
    rules::check_instruction,
};
