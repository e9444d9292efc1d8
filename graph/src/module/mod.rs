//! HLO modules as nodes, and the reader of serialized modules. The folder `text` reads HLO text.

mod builder;
mod extent;
mod hlo_module;
mod nodes;
mod reader;

pub(crate) use self::{
    builder::{ModuleBuilder, check_instruction},
    nodes::{Nodes, Origin},
};
pub use self::{
    extent::ModuleExtent,
    hlo_module::{HloModule, NodeDescription},
};
