//! Programs before fusion: the nodes of an entry computation, and those that a fusion may compute in the kernels of their
//! users. The folder `fusion` forms the kernels.

mod bits;
mod callees;
mod fusion_program;
mod node;
mod opcodes;
mod prepared;

pub(crate) use self::bits::{flip, is_set, row_bytes};
pub use self::fusion_program::FusionProgram;
