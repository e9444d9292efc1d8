//! Artifacts, and the models that are loaded from them.
//!
//! Everything about an artifact that can be told without running it is checked as it is read; what it answers is
//! checked by [`crate::registry`] before it serves.

mod artifact;
mod artifact_error;
mod interface;
mod loaded;
mod manifest;
mod onnx;
mod segment;
mod state;
mod tensor;
mod whole_graph;

pub use artifact::Artifact;
pub use artifact_error::ArtifactError;
pub use loaded::{Model, ModelFailed};
pub use manifest::{MANIFEST_FILE, Manifest, ManifestError, MeasuredQuality, ModelKind};
pub use segment::EncoderInput;
pub use state::{ModelState, REJECTION_REASONS, Rejection};
pub use whole_graph::{Interrupt, WholeGraphInput};
