//! Programs before fusion: the nodes of an entry computation, and those that a fusion may compute in the kernels of their
//! users. The folder `fusion` forms the kernels.

mod fusion_program;

pub use self::fusion_program::FusionProgram;
pub(crate) use self::fusion_program::{flip, is_set, row_bytes};
