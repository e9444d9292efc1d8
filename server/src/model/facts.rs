use hlorank_graph::{Digest, Pad, Task};

use super::Manifest;

/// What models of every kind have.
#[derive(Clone, Debug)]
pub struct ModelFacts {
    /// Name of the model.
    pub name: String,
    /// BLAKE3 of the manifest, which holds the digest of every other file.
    pub digest: Digest,
    /// What the model scores.
    pub task: Task,
    /// The value that pads the sequence features.
    pub pad: Pad,
}

impl ModelFacts {
    pub(super) fn new(manifest: &Manifest, digest: Digest) -> Self {
        Self {
            name: manifest.name.clone(),
            digest,
            task: manifest.task(),
            pad: manifest.pad(),
        }
    }
}
