use std::{collections::BTreeMap, fmt};

use hlorank_graph::{Digest, MAX_SEGMENT_NODES, Pad, Task, shortened};
use serde::Deserialize;

/// Written last into an artifact's folder: a version without one does not exist yet.
pub const MANIFEST_FILE: &str = "manifest.json";

/// Newest manifest format that is read.
const SCHEMA: u32 = 1;

/// Nodes of the largest bucket, and numbers of an embedding: a bound of what one run of the encoder takes.
const MAX_BUCKET: usize = 4 * MAX_SEGMENT_NODES;
const MAX_EMBEDDING: usize = 4096;

/// The one field that every format has.
#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

/// Figures on held-out data: numbers by name, and how the data were held out.
pub type MeasuredQuality = BTreeMap<String, serde_json::Value>;

/// How a model is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// `segment`: segment by segment, and embeddings summed.
    Segment,
    /// `graph`: the whole graph with some configurations at a time.
    WholeGraph {
        /// How many configurations at a time; at least 1.
        chunk_configs: usize,
    },
}

impl fmt::Display for ModelKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Segment => SEGMENT,
            Self::WholeGraph { .. } => WHOLE_GRAPH,
        })
    }
}

const SEGMENT: &str = "segment";
const WHOLE_GRAPH: &str = "graph";

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
    kind: String,
    feature_digest: String,
    /// Length of an embedding; 0 for a whole-graph model.
    #[serde(default)]
    pub embedding_size: usize,
    /// Padded segment sizes in nodes, ascending; none for a whole-graph model.
    #[serde(default)]
    pub buckets: Vec<usize>,
    #[serde(default)]
    chunk_configs: usize,
    pad_value: i32,
    /// Whether a score depends on the other configurations of its chunk, as only a whole-graph model's may.
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
    #[error("{MANIFEST_FILE} cannot be read: {0}")]
    Unreadable(String),
    /// Written by a newer exporter.
    #[error("{MANIFEST_FILE} has schema {found}, this server reads up to {SCHEMA}; update the server")]
    NewerSchema {
        /// Its format.
        found: u32,
    },
    /// Trained with another featurization than the server's.
    #[error(
        "{MANIFEST_FILE}: `feature_digest` is `{found}`, expected `{expected}`, the featurization of this server"
    )]
    FeatureDigest {
        /// By the manifest.
        found: String,
        /// Of this server.
        expected: Digest,
    },
    /// A field that makes no sense or does not fit this server.
    #[error("{MANIFEST_FILE}: `{field}` is `{found}`, expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl ManifestError {
    /// What was wrong, in `UPPER_SNAKE_CASE`; stable.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "MANIFEST_UNREADABLE",
            Self::NewerSchema { .. } => "MANIFEST_NEWER",
            Self::FeatureDigest { .. } => "FEATURE_DIGEST_MISMATCH",
            Self::Field { .. } => "MANIFEST_INVALID",
        }
    }
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn read(json: &[u8]) -> Result<Self, ManifestError> {
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
        let kind = [SEGMENT, WHOLE_GRAPH].contains(&self.kind.as_str());
        check(kind, "kind", &self.kind, &format!("{SEGMENT} or {WHOLE_GRAPH}"))?;
        check(self.version > 0, "version", &self.version, "1 or more")?;
        check(Pad::from_value(self.pad_value).is_some(), "pad_value", &self.pad_value, "0 or -1")?;
        match self.kind() {
            ModelKind::Segment => self.check_segment()?,
            ModelKind::WholeGraph { .. } => self.check_whole_graph()?,
        }
        let expected = hlorank_graph::feature_digest();
        if Digest::from_hex(&self.feature_digest) != Some(expected) {
            return Err(ManifestError::FeatureDigest { found: shortened(&self.feature_digest), expected });
        }
        let training = Digest::from_hex(&self.training_data_digest).is_some();
        check(training, "training_data_digest", &self.training_data_digest, "64 hexadecimal digits")
    }

    fn check_segment(&self) -> Result<(), ManifestError> {
        check(!self.batch_dependent, "batch_dependent", &self.batch_dependent, "false for a segment model")?;
        let sizes = 1..=MAX_EMBEDDING;
        let size = self.embedding_size;
        check(sizes.contains(&size), "embedding_size", &size, &format!("1 to {MAX_EMBEDDING}"))?;
        check(self.chunk_configs == 0, "chunk_configs", &self.chunk_configs, "none for a segment model")?;
        let ascending = self.buckets.is_sorted_by(|one, next| one < next) && self.buckets.first() > Some(&0);
        let largest = self.buckets.last().is_some_and(|last| (MAX_SEGMENT_NODES..=MAX_BUCKET).contains(last));
        // What is computed per segment then fills vector registers, wherever the segment stands in a block.
        let multiples = self.buckets.iter().all(|bucket| bucket.is_multiple_of(4));
        let expected = format!("ascending multiples of 4, the last from {MAX_SEGMENT_NODES} to {MAX_BUCKET}");
        check(ascending && largest && multiples, "buckets", &format!("{:?}", self.buckets), &expected)
    }

    fn check_whole_graph(&self) -> Result<(), ManifestError> {
        let none = "none for a whole-graph model";
        check(self.chunk_configs > 0, "chunk_configs", &self.chunk_configs, "1 or more")?;
        check(self.embedding_size == 0, "embedding_size", &self.embedding_size, none)?;
        check(self.buckets.is_empty(), "buckets", &format!("{:?}", self.buckets), none)
    }

    /// How the model is evaluated.
    #[must_use]
    pub fn kind(&self) -> ModelKind {
        if self.kind == SEGMENT {
            return ModelKind::Segment;
        }
        ModelKind::WholeGraph { chunk_configs: self.chunk_configs }
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
    Err(ManifestError::Field { field, found: shortened(&found.to_string()), expected: expected.to_owned() })
}

/// What serde says, which quotes the file.
#[expect(clippy::needless_pass_by_value, reason = "what a Result's error is mapped with")]
fn unreadable(error: serde_json::Error) -> ManifestError {
    let message = error.to_string();
    let start = shortened(&message);
    if start == message {
        return ManifestError::Unreadable(message);
    }
    ManifestError::Unreadable(format!("{start} at line {} column {}", error.line(), error.column()))
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

    fn whole_graph_manifest() -> Value {
        let mut manifest = manifest();
        manifest["kind"] = json!("graph");
        manifest["chunk_configs"] = json!(5);
        manifest
            .as_object_mut()
            .unwrap()
            .retain(|field, _| !["embedding_size", "buckets"].contains(&field.as_str()));
        manifest
    }

    fn read(manifest: &Value) -> Result<Manifest, ManifestError> {
        Manifest::read(manifest.to_string().as_bytes())
    }

    #[test]
    fn a_sound_manifest_is_read() {
        let manifest = read(&manifest()).unwrap();
        assert_eq!(manifest.kind(), ModelKind::Segment);
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
    fn a_whole_graph_model_says_how_many_configurations_it_takes() {
        for batch_dependent in [false, true] {
            let mut written = whole_graph_manifest();
            written["batch_dependent"] = json!(batch_dependent);
            let manifest = read(&written).unwrap();
            assert_eq!(manifest.kind(), ModelKind::WholeGraph { chunk_configs: 5 });
            assert_eq!(manifest.kind().to_string(), "graph");
            assert_eq!(manifest.batch_dependent, batch_dependent);
        }
    }

    #[test]
    fn a_long_value_is_shortened_in_a_message() {
        let long = "é".repeat(1 << 20);
        for (field, value) in [
            ("task", json!(long)),
            ("version", json!(long)),
            ("buckets", json!(vec![4; 1 << 20])),
            ("feature_digest", json!(long)),
            ("training_data_digest", json!(long)),
        ] {
            let mut manifest = manifest();
            manifest[field] = value;
            let message = read(&manifest).unwrap_err().to_string();
            assert!(message.len() < 400, "{field}: {} bytes", message.len());
        }
    }

    fn assert_each_is_named(manifest: &Value, wrong: Vec<(&str, Value)>) {
        for (wrong_field, value) in wrong {
            let mut manifest = manifest.clone();
            manifest[wrong_field] = value;
            let refused = read(&manifest).unwrap_err();
            assert!(
                matches!(&refused, ManifestError::Field { field, .. } if *field == wrong_field),
                "{refused}"
            );
        }
    }

    #[test]
    fn each_wrong_field_is_named() {
        let wrong = vec![
            ("task", json!("fusion")),
            ("kind", json!("node")),
            ("batch_dependent", json!(true)),
            ("version", json!(0)),
            ("embedding_size", json!(0)),
            ("chunk_configs", json!(5)),
            ("pad_value", json!(1)),
            ("buckets", json!([8, 4, 512])),
            ("buckets", json!([8, 256])),
            ("buckets", json!([6, 512])),
            ("buckets", json!([8, 200_000])),
            ("embedding_size", json!(1_000_000)),
            ("buckets", json!([])),
            ("training_data_digest", json!("none")),
        ];
        assert_each_is_named(&manifest(), wrong);
    }

    #[test]
    fn another_featurization_is_told() {
        let mut manifest = manifest();
        manifest["feature_digest"] = json!("00".repeat(32));
        assert!(matches!(read(&manifest), Err(ManifestError::FeatureDigest { .. })));
    }

    #[test]
    fn each_wrong_field_of_a_whole_graph_model_is_named() {
        let wrong = vec![
            ("chunk_configs", json!(0)),
            ("embedding_size", json!(64)),
            ("buckets", json!([512])),
            ("pad_value", json!(1)),
        ];
        assert_each_is_named(&whole_graph_manifest(), wrong);
    }

    #[test]
    fn a_field_that_the_kind_needs_is_named_where_it_is_missing() {
        for (mut manifest, missing) in [
            (manifest(), "embedding_size"),
            (manifest(), "buckets"),
            (whole_graph_manifest(), "chunk_configs"),
        ] {
            manifest.as_object_mut().unwrap().remove(missing);
            let refused = read(&manifest).unwrap_err();
            assert!(matches!(&refused, ManifestError::Field { field, .. } if *field == missing), "{refused}");
        }
    }
}
