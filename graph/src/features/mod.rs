//! The features of a node that a model reads, and the featurizer that computes them from an HLO instruction
//! (`TpuGraphs`, spec §4).
//!
//! All arithmetic is on `i64`, wraps on overflow, and is rounded to `f32` at the end.

mod instance;
mod instruction;
mod loop_columns;
mod named_set;
mod set;

pub use instance::{InstanceFeature, InstanceFeatureError, InstanceFeatures, InstanceValue};
pub(crate) use instruction::parameter_row;
pub(crate) use instruction::{aggregate, featurize};
pub(crate) use loop_columns::COUNTED_OPCODES;
pub use loop_columns::{LOOP_COLUMNS, LOOP_FEATURES};
pub(crate) use named_set::is_set_name;
pub use named_set::{NamedFeatureSet, NamedSetError};
pub use set::{FEATURES, FeatureSet};
pub use set::{Pad, SequenceLengths};
