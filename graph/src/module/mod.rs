//! HLO modules as nodes, and the reader of serialized modules. The folder `text` reads HLO text.

mod builder;
mod computations;
mod finish;
mod hlo_module;
mod node_description;
mod nodes;
mod reader;
mod references;
mod shapes;
mod verify;

pub(crate) use self::{
    builder::ModuleBuilder,
    nodes::{Nodes, Origin},
    verify::check_instruction,
};
pub use self::{hlo_module::HloModule, node_description::NodeDescription};
