//! Artifacts, and the models that are loaded from them.
//!
//! `artifact` reads the folder of a version: it checks the signature, reads the `manifest` and every file that the manifest
//! lists, and has `onnx` check the models without running them. `loaded` makes the sessions of every worker. The registry compares
//! the scores of the loaded model with the golden cases before the model serves. Whatever fails on the way is a [`Rejection`]: a
//! stable reason for operators and metrics, and a message. No caller tells failures apart in another way, so that there is no type
//! of error for each module.
//!
//! Each kind of model is one file of `manifest` for its settings and files, one module here (`segment`, `whole_graph`) for its
//! sessions, and one in `engine` for its evaluation.

mod artifact;
mod calibration;
mod features;
mod growth;
mod loaded;
mod manifest;
mod onnx;
mod segment;
mod sessions;
mod signature;
mod state;
mod target;
mod whole_graph;

pub use artifact::{Artifact, ModelFacts};
pub use calibration::{Calibration, ListTraits, SeenList};
pub use features::ModelFeatures;
pub use growth::{MemoryGrowth, RunSizes};
pub use hlorank_adaptation::{ExpectedTau, Prior, ScoreUnit};
pub use loaded::{LoadedModel, Model};
pub use manifest::{
    Chunking, MANIFEST_FILE, Manifest, MeasuredQuality, ModelKind, ModelNodes, Permutations,
    SegmentSettings, WholeGraphSettings,
};
pub use segment::{EncoderInput, SegmentModel, SegmentTensors};
pub use sessions::{ModelFailed, RunReports};
pub use signature::{ModelKeys, ModelKeysError};
pub use state::{ModelState, REJECTION_REASONS, Rejection};
pub use target::{Target, TargetMatch};
pub use whole_graph::{WholeGraphInput, WholeGraphModel};
