//! HLO graphs as a cost model sees them: read, featurized, pruned, cut into segments and hashed; graphs of named feature
//! sets; and the configurations of them, in every form they travel in.
//!
//! Pure and synchronous: no network, no model. The server, the command line and, through it, training use this
//! one featurizer.

mod arrays;
mod configuration;
mod cut;
mod digest;
mod encoded_graph;
mod error;
mod features;
mod file;
mod fusion;
mod graph;
mod hash;
mod limits;
mod loops;
mod measured_graph;
mod module;
mod npz;
mod opcode;
mod output_file;
pub mod pace;
mod program;
pub mod quality;
mod recognize;
mod segment;
mod shortened;
mod syntax;
mod task;
mod text;
mod tuning;
mod wire;

pub use arrays::{GraphArrays, OperandLists};
pub use configuration::*;
pub use cut::{MAX_SEGMENT_NODES, Occurrence, PrunedGraph, SegmentedGraph, Summary, prune};
pub use digest::{Digest, from_hex, to_hex};
pub use encoded_graph::decode_graph;
pub use error::{
    ConfigurationError, FileError, FusionError, GraphError, ModuleFault, TextError, UnreadContent,
};
pub use features::{
    FEATURES, FeatureSet, InstanceFeature, InstanceFeatureError, InstanceFeatures, InstanceValue,
    LOOP_COLUMNS, LOOP_FEATURES, NamedFeatureSet, NamedSetError, Pad, SequenceLengths,
};
pub use file::{GraphFile, read_input};
pub use fusion::{Kernel, KernelLimits, KernelMemory, KernelTooLarge};
pub use graph::{FeatureGraph, Graph};
pub use limits::{LimitKind, Limits};
pub use loops::LoopNest;
pub use measured_graph::{GraphSource, MeasuredGraph, Measurements};
pub use module::{HloModule, ModuleExtent, NodeDescription};
pub use npz::{FeatureFile, GoldenCase, read_exported, read_golden_cases};
pub use opcode::{is_made_by_optimization, is_usually_configurable, opcode_id, opcode_name};
pub use output_file::OutputFile;
pub use program::FusionProgram;
pub use recognize::{FileKind, content_name};
pub use segment::Segment;
pub use shortened::{escaped, is_printable, shortened, without_error_numbers};
pub use task::{Element, Kind, Scope, Task};
