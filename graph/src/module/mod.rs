//! HLO modules as nodes, and the reader of serialized modules. The folder `text` reads HLO text.

mod builder;
mod hlo_module;
mod nodes;
mod reader;

pub use self::hlo_module::{HloModule, NodeDescription};
pub(crate) use self::{
    builder::{ModuleBuilder, check_instruction},
    nodes::{Nodes, Origin},
};
