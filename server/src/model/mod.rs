//! Artifacts, and the models that are loaded from them.
//!
//! Everything that can be checked without running a model is checked when its artifact is read. The registry compares
//! the scores of the loaded model with the golden cases before the model serves.
//!
//! Each kind of model is one file of `manifest` for its settings and files, one folder here (`segment`, `whole_graph`) for its
//! sessions, and one in `engine` for its evaluation.

mod artifact;
mod artifact_error;
mod calibration;
mod facts;
mod features;
mod growth;
mod interface;
mod list_traits;
mod loaded;
mod manifest;
mod manifest_error;
mod onnx;
mod score;
mod segment;
mod sessions;
mod signature;
mod state;
mod target;
mod tensor;
mod whole_graph;

pub use artifact::Artifact;
pub use artifact_error::ArtifactError;
pub use calibration::{Calibration, ExpectedTau};
pub use facts::ModelFacts;
pub use features::ModelFeatures;
pub use growth::{MemoryGrowth, RunSizes};
pub use list_traits::{ListTraits, SeenList};
pub use loaded::{LoadedModel, Model};
pub use manifest::{
    Chunking, Manifest, MeasuredQuality, ModelKind, ModelNodes, Permutations, SegmentSettings,
    WholeGraphSettings,
};
pub use manifest_error::{MANIFEST_FILE, ManifestError};
pub use score::{Prior, ScoreUnit};
pub use segment::{EncoderInput, SegmentModel, SegmentTensors};
pub use sessions::{ModelFailed, RunReports};
pub use signature::{ModelKeys, ModelKeysError, SignatureError};
pub use state::{ModelState, REJECTION_REASONS, Rejection};
pub use target::{Target, TargetMatch};
pub use whole_graph::{WholeGraphInput, WholeGraphModel};
