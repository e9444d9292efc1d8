use std::collections::BTreeMap;

use hlorank_graph::{Digest, MAX_SEGMENT_NODES, Pad, Task};
use serde::Deserialize;

/// Written last into an artifact's folder.
pub(super) const FILE_NAME: &str = "manifest.json";

/// Newest manifest format that is read.
const SCHEMA: u32 = 1;

/// The one field that every format has.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

/// Figures on held-out data: numbers by name, and how the data were held out.
pub type MeasuredQuality = BTreeMap<String, serde_json::Value>;

/// What an artifact says of itself: `manifest.json`.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// Format of this file.
    pub schema: u32,
    /// Name of the model; that of the folder around the version's.
    pub name: String,
    /// Version, from 1; the name of the folder.
    pub version: u64,
    task: String,
    /// How the model is built, such as `graphsage-transformer-segment`.
    pub architecture: String,
    /// How it is evaluated: `segment`.
    pub kind: String,
    feature_digest: String,
    /// Length of an embedding.
    pub embedding_size: usize,
    /// Padded segment sizes in nodes, ascending.
    pub buckets: Vec<usize>,
    pad_value: i32,
    /// Whether a score depends on the other configurations of its batch.
    pub batch_dependent: bool,
    /// SHA-256 of each file, in hexadecimal.
    pub files: BTreeMap<String, String>,
    training_data_digest: String,
    /// Figures on held-out data.
    #[serde(default)]
    pub measured_quality: MeasuredQuality,
    /// SPDX licence expression.
    pub licence: String,
}

/// Why a manifest was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    /// Not the JSON that is expected.
    #[error("{FILE_NAME} cannot be read: {0}")]
    Unreadable(String),
    /// Written by a newer exporter.
    #[error("{FILE_NAME} has schema {found}, this server reads up to {SCHEMA}; update the server")]
    NewerSchema {
        /// Its format.
        found: u32,
    },
    /// A field that makes no sense or does not fit this server.
    #[error("{FILE_NAME}: `{field}` is `{found}`, expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn read(json: &[u8]) -> Result<Self, ManifestError> {
        let unreadable = |error: serde_json::Error| ManifestError::Unreadable(error.to_string());
        // The format first: a newer one may have other fields.
        let SchemaOnly { schema } = serde_json::from_slice(json).map_err(unreadable)?;
        if schema > SCHEMA {
            return Err(ManifestError::NewerSchema { found: schema });
        }
        let manifest: Self = serde_json::from_slice(json).map_err(unreadable)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        let task = ["tile", "layout"].contains(&self.task.as_str());
        check(task, "task", &self.task, "tile or layout")?;
        check(self.kind == "segment", "kind", &self.kind, "segment")?;
        check(!self.batch_dependent, "batch_dependent", &self.batch_dependent, "false for a segment model")?;
        check(self.version > 0, "version", &self.version, "1 or more")?;
        check(self.embedding_size > 0, "embedding_size", &self.embedding_size, "1 or more")?;
        check(Pad::from_value(self.pad_value).is_some(), "pad_value", &self.pad_value, "0 or -1")?;
        let ascending = self.buckets.is_sorted_by(|one, next| one < next) && self.buckets.first() > Some(&0);
        let largest = self.buckets.last() >= Some(&MAX_SEGMENT_NODES);
        let expected = format!("ascending sizes up to at least {MAX_SEGMENT_NODES}");
        check(ascending && largest, "buckets", &format!("{:?}", self.buckets), &expected)?;
        let served = hlorank_graph::feature_digest().to_string();
        check(self.feature_digest == served, "feature_digest", &self.feature_digest, &served)?;
        let training = Digest::from_hex(&self.training_data_digest).is_some();
        check(training, "training_data_digest", &self.training_data_digest, "64 hexadecimal digits")
    }

    /// What the model scores.
    #[must_use]
    pub fn task(&self) -> Task {
        if self.task == "tile" { Task::Tile } else { Task::Layout }
    }

    /// What pads the sequence features.
    #[must_use]
    pub fn pad(&self) -> Pad {
        Pad::from_value(self.pad_value).unwrap_or_default()
    }

    /// What the model was trained on.
    #[must_use]
    pub fn training_data_digest(&self) -> Option<Digest> {
        Digest::from_hex(&self.training_data_digest)
    }

    /// The padded size for a segment of `nodes` nodes.
    #[must_use]
    pub fn bucket(&self, nodes: usize) -> usize {
        self.buckets.iter().copied().find(|&bucket| bucket >= nodes).unwrap_or(nodes)
    }
}

fn check(
    holds: bool,
    field: &'static str,
    found: &impl ToString,
    expected: &str,
) -> Result<(), ManifestError> {
    if holds {
        return Ok(());
    }
    Err(ManifestError::Field { field, found: found.to_string(), expected: expected.to_owned() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn manifest() -> Value {
        json!({
            "schema": 1, "name": "m", "version": 3, "task": "tile", "architecture": "a", "kind": "segment",
            "feature_digest": hlorank_graph::feature_digest().to_string(), "embedding_size": 64,
            "buckets": [8, 64, 512], "pad_value": -1, "batch_dependent": false, "files": {},
            "training_data_digest": "00".repeat(32), "measured_quality": {"kendall_tau": 0.5}, "licence": "Apache-2.0"
        })
    }

    fn read_with(field: &str, value: Value) -> Result<Manifest, ManifestError> {
        let mut manifest = manifest();
        manifest[field] = value;
        Manifest::read(manifest.to_string().as_bytes())
    }

    #[test]
    fn a_sound_manifest_is_read() {
        let manifest = Manifest::read(manifest().to_string().as_bytes()).unwrap();
        assert_eq!(manifest.task(), Task::Tile);
        assert_eq!(manifest.pad(), Pad::MinusOne);
        assert_eq!([1, 8, 9, 512].map(|nodes| manifest.bucket(nodes)), [8, 8, 64, 512]);
    }

    #[test]
    fn a_newer_format_is_told_before_its_fields_are_read() {
        let newer = Manifest::read(br#"{"schema": 2, "task": 5}"#);
        assert_eq!(newer.unwrap_err(), ManifestError::NewerSchema { found: 2 });
    }

    #[test]
    fn each_wrong_field_is_named() {
        let wrong = [
            ("task", json!("fusion")),
            ("kind", json!("graph")),
            ("batch_dependent", json!(true)),
            ("version", json!(0)),
            ("embedding_size", json!(0)),
            ("pad_value", json!(1)),
            ("buckets", json!([8, 4, 512])),
            ("buckets", json!([8, 256])),
            ("buckets", json!([])),
            ("feature_digest", json!("00".repeat(32))),
            ("training_data_digest", json!("none")),
        ];
        for (wrong_field, value) in wrong {
            let refused = read_with(wrong_field, value).unwrap_err();
            assert!(
                matches!(&refused, ManifestError::Field { field, .. } if *field == wrong_field),
                "{refused}"
            );
        }
    }
}
