//! Artifacts, and the models that are loaded from them.
//!
//! Everything that can be checked without running a model is checked when its artifact is read. The registry compares
//! the scores of the loaded model with the golden cases before the model serves.
//!
//! Each kind of model is one folder here (`segment`, `whole_graph`) for its settings, files and sessions, and one in
//! `engine` for its evaluation.

mod artifact;
mod artifact_error;
mod facts;
mod features;
mod growth;
mod interface;
mod loaded;
mod manifest;
mod manifest_error;
mod onnx;
mod prior;
mod segment;
mod sessions;
mod state;
mod tensor;
mod whole_graph;

pub use artifact::Artifact;
pub use artifact_error::ArtifactError;
pub use facts::ModelFacts;
pub use features::ModelFeatures;
pub use growth::{MemoryGrowth, RunSizes};
pub use loaded::{LoadedModel, Model};
pub use manifest::{Manifest, MeasuredQuality, ModelKind, ScoreUnit};
pub use manifest_error::{MANIFEST_FILE, ManifestError};
pub use prior::Prior;
pub use segment::{EncoderInput, SegmentModel, SegmentSettings, SegmentTensors};
pub use sessions::{ModelFailed, RunReports};
pub use state::{ModelState, REJECTION_REASONS, Rejection};
pub use whole_graph::{
    Chunking, ModelNodes, Permutations, WholeGraphInput, WholeGraphModel, WholeGraphSettings,
};
