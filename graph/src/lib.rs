//! HLO graphs as a cost model sees them: read, featurized, pruned, cut into segments and hashed; graphs of named feature
//! sets; and the configurations of them, in every form they travel in.
//!
//! Pure and synchronous: no network, no model. The server, the command line and, through it, training use this
//! one featurizer.

mod configuration;
mod cut;
mod digest;
mod encoded_graph;
mod error;
mod features;
mod file;
mod fusion;
mod graph;
mod graph_of_module;
mod hash;
mod limits;
mod measured_graph;
mod module;
mod node_description;
mod npz;
mod opcode;
mod output_file;
pub mod pace;
mod prune;
pub mod quality;
mod recognize;
mod shortened;
mod text;
mod tuning;
mod wire;

pub use configuration::*;
pub use cut::{MAX_SEGMENT_NODES, Occurrence, Segment, SegmentedGraph, Summary};
pub use digest::Digest;
pub use encoded_graph::decode_graph;
pub use error::{ConfigurationError, FileError, FusionError, GraphError, ModuleFault, TextError};
pub use features::{FEATURES, FeatureSet, NamedFeatureSet, NamedSetError, Pad, SequenceLengths};
pub use file::GraphFile;
pub use fusion::{FusionProgram, Kernel, KernelLimits, KernelTooLarge};
pub use graph::{FeatureGraph, Graph, GraphArrays};
pub use limits::{LimitKind, Limits};
pub use measured_graph::{GraphSource, MeasuredGraph, Measurements};
pub use module::HloModule;
pub use node_description::NodeDescription;
pub use npz::{FeatureFile, GoldenCase, read_exported, read_golden_cases};
pub use opcode::{is_made_by_optimization, is_usually_configurable, opcode_id, opcode_name};
pub use output_file::OutputFile;
pub use prune::{Pruned, prune};
pub use recognize::{FileKind, Found};
pub use shortened::{is_printable, shortened};
