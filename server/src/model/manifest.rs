use std::{collections::BTreeMap, fmt, sync::Arc};

use hlorank_graph::{Digest, FeatureSet, NamedFeatureSet, Pad, Scope, Task, shortened};
use serde::Deserialize;
use serde_json::Value;

use super::{
    features::ModelFeatures,
    interface::Interface,
    manifest_error::{ManifestError, SCHEMA, check_absent, check_field, require_field, unreadable},
    segment::{SegmentSettings, WrittenSegment},
    whole_graph::{WholeGraphSettings, WrittenWholeGraph},
};

/// Figures on held-out data: numbers by name, and how the data were held out.
pub type MeasuredQuality = BTreeMap<String, Value>;

/// What an artifact says of itself: `manifest.json`, checked.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Name of the model, and of the folder that holds its versions.
    pub name: String,
    /// Version, from 1, and name of its folder.
    pub version: u64,
    /// How the model is built, such as `graphsage-transformer-segment`.
    pub architecture: String,
    /// SHA-256 of each file, in hexadecimal.
    pub files: BTreeMap<String, String>,
    /// Figures on held-out data.
    pub measured_quality: MeasuredQuality,
    /// SPDX licence expression.
    pub licence: String,
    task: Task,
    kind: ModelKind,
    features: ModelFeatures,
    pad: Pad,
    unit: ScoreUnit,
    training_data_digest: Digest,
}

/// The unit of a model's scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreUnit {
    /// Scores only order configurations.
    #[default]
    None,
    /// Scores are seconds of run time.
    Seconds,
}

/// How a model is evaluated, with the settings of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// `segment`: segment by segment; the sum of the embeddings is scored.
    Segment(SegmentSettings),
    /// `graph`: the whole graph with some configurations at a time.
    WholeGraph(WholeGraphSettings),
}

/// The manifest as it is written.
#[derive(Deserialize)]
struct Written {
    name: String,
    version: u64,
    task: String,
    architecture: String,
    feature_digest: String,
    /// Only models of `feature-set` name the set.
    feature_set: Option<Value>,
    /// All other models have it.
    pad_value: Option<Value>,
    #[serde(default)]
    unit: Option<String>,
    files: BTreeMap<String, String>,
    training_data_digest: String,
    #[serde(default)]
    measured_quality: MeasuredQuality,
    licence: String,
    #[serde(flatten)]
    kind: WrittenKind,
}

/// A named feature set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFeatureSet {
    name: String,
    node_features: Vec<String>,
    config_features: Vec<String>,
}

/// The fields that depend on the kind.
#[derive(Deserialize)]
#[serde(tag = "kind")]
enum WrittenKind {
    #[serde(rename = "segment")]
    Segment(WrittenSegment),
    #[serde(rename = "graph")]
    WholeGraph(WrittenWholeGraph),
}

/// Names of the kinds in a manifest.
const KINDS: [&str; 2] = ["segment", "graph"];

/// The fields that decide how the others are read.
#[derive(Deserialize)]
struct Preamble {
    schema: u32,
    kind: Option<Value>,
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn read(json: &[u8]) -> Result<Self, ManifestError> {
        // The format first: a newer one may have other fields.
        let Preamble { schema, kind } = serde_json::from_slice(json).map_err(unreadable)?;
        if schema > SCHEMA {
            return Err(ManifestError::NewerSchema { found: schema });
        }
        if let Some(Value::String(kind)) = kind {
            check_field(KINDS.contains(&kind.as_str()), "kind", &kind, &KINDS.join(" or "))?;
        }
        let written: Written = serde_json::from_slice(json).map_err(unreadable)?;
        written.checked()
    }

    /// What the model scores.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// How the model is evaluated.
    #[must_use]
    pub fn kind(&self) -> &ModelKind {
        &self.kind
    }

    /// The ONNX files that the model consists of, with their interfaces.
    pub(super) fn onnx_files(&self) -> Vec<(&'static str, Interface)> {
        match &self.kind {
            ModelKind::Segment(settings) => settings.files(self.task, &self.features),
            ModelKind::WholeGraph(_) => WholeGraphSettings::files(self.task, &self.features),
        }
    }

    /// The features that the model takes.
    #[must_use]
    pub fn features(&self) -> &ModelFeatures {
        &self.features
    }

    /// The value that pads the sequence features.
    #[must_use]
    pub fn pad(&self) -> Pad {
        self.pad
    }

    /// The unit of the scores.
    #[must_use]
    pub fn unit(&self) -> ScoreUnit {
        self.unit
    }

    /// SHA-256 of the training data.
    #[must_use]
    pub fn training_data_digest(&self) -> Digest {
        self.training_data_digest
    }
}

impl Written {
    fn checked(self) -> Result<Manifest, ManifestError> {
        let tasks = Task::ALL.map(Task::name).join(" or ");
        let task = require_field(Task::from_name(&self.task), "task", &self.task, &tasks)?;
        check_field(self.version > 0, "version", &self.version, "1 or more")?;
        let (features, pad) =
            read_features(task, &self.feature_digest, self.feature_set.as_ref(), self.pad_value.as_ref())?;
        let unit = match self.unit {
            None => ScoreUnit::None,
            Some(written) => {
                let seconds = (written == "seconds").then_some(ScoreUnit::Seconds);
                require_field(seconds, "unit", &written, "seconds, or not set")?
            }
        };
        let kind = match self.kind {
            WrittenKind::Segment(written) => ModelKind::Segment(written.checked(task, &self.files)?),
            WrittenKind::WholeGraph(written) => ModelKind::WholeGraph(written.checked(task)?),
        };
        let written = &self.training_data_digest;
        let digest = Digest::from_hex(written);
        let training_data_digest =
            require_field(digest, "training_data_digest", written, "64 hexadecimal digits")?;
        Ok(Manifest {
            name: self.name,
            version: self.version,
            architecture: self.architecture,
            files: self.files,
            measured_quality: self.measured_quality,
            licence: self.licence,
            task,
            kind,
            features,
            pad,
            unit,
            training_data_digest,
        })
    }
}

/// Reads the features of a model: the name and the columns of a set for `feature-set`, and the padding of sequences for all
/// other tasks.
fn read_features(
    task: Task,
    digest: &str,
    named: Option<&Value>,
    pad: Option<&Value>,
) -> Result<(ModelFeatures, Pad), ManifestError> {
    let found = Digest::from_hex(digest);
    let mismatch = |expected| ManifestError::FeatureDigest { found: shortened(digest), expected };
    if task.kind().scope == Scope::EveryNode {
        check_absent(pad, "pad_value", "none for a feature set")?;
        let named = Arc::new(read_named(named)?);
        return match named.digest() {
            expected if found == Some(expected) => Ok((ModelFeatures::Named(named), Pad::Zero)),
            expected => Err(mismatch(expected)),
        };
    }
    check_absent(named, "feature_set", "none for models of HLO")?;
    let written = pad.map_or("not set".to_owned(), Value::to_string);
    let pad = pad.and_then(Value::as_i64).and_then(|pad| Pad::from_value(i32::try_from(pad).ok()?));
    let pad = require_field(pad, "pad_value", &written, "0 or -1")?;
    let set = found.and_then(FeatureSet::by_digest);
    let set = set.ok_or_else(|| mismatch(FeatureSet::TPUGRAPHS.digest()))?;
    Ok((ModelFeatures::Instructions(set), pad))
}

fn read_named(written: Option<&Value>) -> Result<NamedFeatureSet, ManifestError> {
    let expected = "an object with name, node_features and config_features";
    let found = written.map_or("not set".to_owned(), Value::to_string);
    let set = written.and_then(|written| WrittenFeatureSet::deserialize(written).ok());
    let WrittenFeatureSet { name, node_features, config_features } =
        require_field(set, "feature_set", &found, expected)?;
    let set = NamedFeatureSet::new(name, node_features, config_features);
    set.map_err(|error| ManifestError::Field {
        field: "feature_set",
        found: shortened(&found),
        expected: format!("names that are valid: {error}"),
    })
}

impl ModelKind {
    /// Whether the first configurations of a batch have the same scores without the others.
    #[must_use]
    pub fn allows_partial(&self) -> bool {
        match self {
            Self::Segment(_) => true,
            Self::WholeGraph(settings) => !settings.needs_whole_batch(),
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [segment, whole_graph] = KINDS;
        formatter.write_str(match self {
            Self::Segment(_) => segment,
            Self::WholeGraph(_) => whole_graph,
        })
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Pad;
    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Chunking, ModelNodes, Permutations, WholeGraphSettings};

    fn manifest() -> Value {
        json!({
            "schema": 1, "name": "m", "version": 3, "task": "tile", "architecture": "a", "kind": "segment",
            "feature_digest": FeatureSet::TPUGRAPHS.digest().to_string(), "embedding_size": 64,
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
        assert_eq!(manifest.kind().to_string(), "segment");
        let ModelKind::Segment(settings) = manifest.kind() else { panic!("a segment model") };
        assert_eq!(manifest.task(), Task::Tile);
        assert_eq!(manifest.pad(), Pad::MinusOne);
        assert_eq!([1, 8, 9, 512].map(|nodes| settings.bucket(nodes)), [8, 8, 64, 512]);
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
            let expected = WholeGraphSettings {
                chunk_configs: 5,
                batch_dependent,
                nodes: ModelNodes::All,
                chunking: Chunking::Full,
                permutations: None,
            };
            assert_eq!(*manifest.kind(), ModelKind::WholeGraph(expected));
            assert_eq!(manifest.kind().to_string(), "graph");
        }
    }

    #[test]
    fn a_whole_graph_model_of_layouts_may_take_pruned_nodes_and_average_even_chunks() {
        let mut written = whole_graph_manifest();
        let manifest = read(&written).unwrap();
        assert!(manifest.kind().allows_partial());
        for (field, value) in [
            ("task", json!("layout")),
            ("batch_dependent", json!(true)),
            ("nodes", json!("pruned")),
            ("chunking", json!("even")),
            ("permutations", json!({"count": 10, "seed": u64::MAX})),
        ] {
            written[field] = value;
        }
        let manifest = read(&written).unwrap();
        assert!(!manifest.kind().allows_partial());
        let ModelKind::WholeGraph(settings) = manifest.kind() else { panic!("a whole-graph model") };
        assert_eq!((settings.nodes, settings.chunking), (ModelNodes::Pruned, Chunking::Even));
        assert_eq!(settings.permutations, Some(Permutations { count: 10, seed: u64::MAX }));
    }

    #[test]
    fn segments_of_kernels_may_be_larger() {
        let of = |task, nodes, largest| {
            let mut written = manifest();
            (written["task"], written["max_segment_nodes"]) = (json!(task), json!(nodes));
            written["buckets"] = json!([8, largest]);
            read(&written)
        };
        let read = of("tile", 2048, 2048).unwrap();
        let ModelKind::Segment(settings) = read.kind() else { panic!("a segment model") };
        assert_eq!(settings.max_segment_nodes, 2048);
        assert!(of("layout", 512, 512).is_ok());
        for (task, nodes, largest, named) in [
            ("tile", 2049, 2048, "max_segment_nodes"),
            ("tile", 256, 512, "max_segment_nodes"),
            ("tile", 1024, 512, "buckets"),
            ("layout", 1024, 1024, "max_segment_nodes"),
        ] {
            let refused = of(task, nodes, largest).unwrap_err().to_string();
            assert!(refused.contains(&format!("`{named}`")), "{task} {nodes}: {refused}");
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
            ("task", json!("schedule")),
            ("unit", json!("hours")),
            ("kind", json!("node")),
            ("batch_dependent", json!(true)),
            ("version", json!(0)),
            ("embedding_size", json!(0)),
            ("chunk_configs", json!(5)),
            ("nodes", json!("pruned")),
            ("chunking", json!("even")),
            ("permutations", json!({"count": 10, "seed": 101})),
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

    fn named_manifest() -> Value {
        let mut manifest = whole_graph_manifest();
        manifest.as_object_mut().unwrap().remove("pad_value");
        manifest["task"] = json!("feature-set");
        manifest["feature_set"] =
            json!({"name": "loops", "node_features": ["depth", "flops"], "config_features": ["tile"]});
        let json = r#"["loops",["depth","flops"],["tile"]]"#;
        manifest["feature_digest"] = json!(blake3::hash(json.as_bytes()).to_string());
        manifest
    }

    #[test]
    fn a_model_of_a_feature_set_names_its_columns() {
        let manifest = read(&named_manifest()).unwrap();
        assert_eq!((manifest.task(), manifest.pad()), (Task::FeatureSet, Pad::Zero));
        let set = manifest.features().named().unwrap();
        assert_eq!((set.name(), set.node_features().len(), set.config_features().len()), ("loops", 2, 1));
    }

    #[test]
    fn each_wrong_field_of_a_model_of_a_feature_set_is_named() {
        let set = |name: &str, nodes: Value| json!({"name": name, "node_features": nodes, "config_features": ["t"]});
        let wrong = vec![
            ("pad_value", json!(0)),
            ("feature_set", json!(null)),
            ("feature_set", json!("loops")),
            ("feature_set", json!({"name": "loops", "node_features": ["a"]})),
            ("feature_set", set("a\"b", json!(["a"]))),
            ("feature_set", set("loops", json!([]))),
            ("feature_set", set("loops", json!(["a", "a"]))),
            ("nodes", json!("pruned")),
        ];
        assert_each_is_named(&named_manifest(), wrong);
        let mut other = named_manifest();
        other["feature_set"]["config_features"] = json!(["tiles"]);
        assert!(matches!(read(&other), Err(ManifestError::FeatureDigest { .. })));
        let mut segment = manifest();
        segment["task"] = json!("feature-set");
        segment["feature_set"] = named_manifest()["feature_set"].clone();
        segment["feature_digest"] = named_manifest()["feature_digest"].clone();
        segment.as_object_mut().unwrap().remove("pad_value");
        assert!(matches!(read(&segment), Err(ManifestError::Field { field: "kind", .. })));
        assert_each_is_named(&manifest(), vec![("feature_set", set("loops", json!(["a"])))]);
    }

    #[test]
    fn each_wrong_field_of_a_whole_graph_model_is_named() {
        let wrong = vec![
            ("chunk_configs", json!(0)),
            ("embedding_size", json!(64)),
            ("buckets", json!([512])),
            ("max_segment_nodes", json!(512)),
            ("pad_value", json!(1)),
            ("nodes", json!("pruned")),
            ("nodes", json!("half")),
            ("chunking", json!("even")),
            ("chunking", json!("odd")),
            ("permutations", json!({"count": 10, "seed": 101})),
        ];
        assert_each_is_named(&whole_graph_manifest(), wrong);
        let mut dependent = whole_graph_manifest();
        dependent["batch_dependent"] = json!(true);
        let wrong = [0, 65].map(|count| ("permutations", json!({"count": count, "seed": 1})));
        assert_each_is_named(&dependent, wrong.to_vec());
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
