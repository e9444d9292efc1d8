use std::{collections::BTreeMap, fmt, sync::Arc};

use hlorank_graph::{Digest, FeatureSet, NamedFeatureSet, Pad, Scope, Task, shortened};
use serde::Deserialize;
use serde_json::Value;

use super::{
    features::ModelFeatures,
    interface::Interface,
    manifest_error::{ManifestError, SCHEMA, check_absent, check_field, require_field, unreadable},
    score::{Prior, ScoreUnit},
    target::Target,
};

mod permutations;
mod segment;
mod whole_graph;

pub use permutations::Permutations;
pub use segment::SegmentSettings;
use segment::WrittenSegment;
pub(super) use segment::{ENCODER, HEAD, SEGMENT};
pub(super) use whole_graph::MODEL;
use whole_graph::WrittenWholeGraph;
pub use whole_graph::{Chunking, ModelNodes, WholeGraphSettings};

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
    /// What it was trained for; empty if the manifest does not say it.
    pub targets: Vec<Target>,
    task: Task,
    kind: ModelKind,
    features: ModelFeatures,
    pad: Pad,
    unit: ScoreUnit,
    prior: Prior,
    training_data_digest: Digest,
}

/// How a model is evaluated, with the settings of that kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// `segment`: segment by segment; the sum of the embeddings is scored.
    Segment(SegmentSettings),
    /// `graph`: the whole graph with some configurations at a time.
    WholeGraph(WholeGraphSettings),
    /// There is no model: every score is 0, and what is known comes from measurements. No manifest on disk says so.
    Absent,
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
    prior: Option<Value>,
    targets: Option<Value>,
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
        // The format comes first: a newer one may have other fields.
        let Preamble { schema, kind } = serde_json::from_slice(json).map_err(unreadable)?;
        if schema > SCHEMA {
            return Err(ManifestError::NewerSchema { found: schema });
        }
        // An unknown kind is reported here, because serde reports it without the name of the field.
        if let Some(Value::String(kind)) = kind {
            check_field(
                KINDS.contains(&kind.as_str()),
                "kind",
                &kind,
                &KINDS.join(" or "),
            )?;
        }
        let written: Written = serde_json::from_slice(json).map_err(unreadable)?;
        written.checked()
    }

    /// What is said of the model that a feature set does not have: neither name nor version.
    pub(super) fn absent(set: Arc<NamedFeatureSet>) -> Self {
        Self {
            name: String::new(),
            version: 0,
            architecture: String::new(),
            files: BTreeMap::new(),
            measured_quality: MeasuredQuality::new(),
            licence: String::new(),
            targets: Vec::new(),
            task: Task::FeatureSet,
            kind: ModelKind::Absent,
            features: ModelFeatures::Named(set),
            pad: Pad::Zero,
            unit: ScoreUnit::None,
            prior: Prior::of_unit(ScoreUnit::None),
            training_data_digest: Digest([0; 32]),
        }
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
            ModelKind::Absent => Vec::new(),
        }
    }

    /// The features that the model takes.
    #[must_use]
    pub fn features(&self) -> &ModelFeatures {
        &self.features
    }

    /// Number of columns of a slot or node in a configuration; 1 if its values mean the same.
    pub(super) fn config_columns(&self) -> usize {
        let named = self.features.config_features();
        self.task().kind().row_columns(named)
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

    /// What its scores say of run times before any is measured.
    #[must_use]
    pub fn prior(&self) -> Prior {
        self.prior
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
        let (features, pad) = self.read_features(task)?;
        let unit = read_unit(self.unit.as_deref())?;
        let prior = self.prior.as_ref().map(Prior::read).transpose()?;
        let targets = self.targets.as_ref().map(Target::read_all).transpose()?;
        let kind = self.kind.checked(task, &self.files)?;
        let training_data_digest = read_data_digest(&self.training_data_digest)?;
        Ok(Manifest {
            name: self.name,
            version: self.version,
            architecture: self.architecture,
            files: self.files,
            measured_quality: self.measured_quality,
            licence: self.licence,
            targets: targets.unwrap_or_default(),
            task,
            kind,
            features,
            pad,
            unit,
            prior: prior.unwrap_or(Prior::of_unit(unit)),
            training_data_digest,
        })
    }

    /// Reads the features of a model: the name and the columns of a set for `feature-set`, and the padding of sequences for
    /// all other tasks.
    fn read_features(&self, task: Task) -> Result<(ModelFeatures, Pad), ManifestError> {
        let set = self.feature_set.as_ref();
        let pad = self.pad_value.as_ref();
        if task.kind().scope == Scope::EveryNode {
            check_absent(pad, "pad_value", "none for a feature set")?;
            let set = Arc::new(read_named(set)?);
            // The manifest has both the set and its digest. If they differ, one of them is not what
            // the model was trained with.
            self.check_digest(set.digest())?;
            return Ok((ModelFeatures::Named(set), Pad::Zero));
        }
        check_absent(set, "feature_set", "none for models of HLO")?;
        let pad = read_pad(pad)?;
        let found = Digest::from_hex(&self.feature_digest);
        let set = found.and_then(FeatureSet::by_digest);
        let set = set.ok_or_else(|| self.digest_mismatch(FeatureSet::TPUGRAPHS.digest()))?;
        Ok((ModelFeatures::Instructions(set), pad))
    }

    fn check_digest(&self, expected: Digest) -> Result<(), ManifestError> {
        if Digest::from_hex(&self.feature_digest) == Some(expected) {
            return Ok(());
        }
        Err(self.digest_mismatch(expected))
    }

    fn digest_mismatch(&self, expected: Digest) -> ManifestError {
        ManifestError::FeatureDigest {
            found: shortened(&self.feature_digest),
            expected,
        }
    }
}

impl WrittenKind {
    fn checked(
        self,
        task: Task,
        files: &BTreeMap<String, String>,
    ) -> Result<ModelKind, ManifestError> {
        Ok(match self {
            Self::Segment(written) => ModelKind::Segment(written.checked(task, files)?),
            Self::WholeGraph(written) => ModelKind::WholeGraph(written.checked(task)?),
        })
    }
}

fn read_unit(written: Option<&str>) -> Result<ScoreUnit, ManifestError> {
    let Some(written) = written else {
        return Ok(ScoreUnit::None);
    };
    let seconds = (written == "seconds").then_some(ScoreUnit::Seconds);
    require_field(seconds, "unit", &written, "seconds, or not set")
}

fn read_data_digest(written: &str) -> Result<Digest, ManifestError> {
    let digest = Digest::from_hex(written);
    let expected = "64 hexadecimal digits";
    require_field(digest, "training_data_digest", &written, expected)
}

fn read_pad(written: Option<&Value>) -> Result<Pad, ManifestError> {
    let pad = written
        .and_then(Value::as_i64)
        .and_then(|pad| Pad::from_value(i32::try_from(pad).ok()?));
    require_field(pad, "pad_value", &or_not_set(written), "0 or -1")
}

fn read_named(written: Option<&Value>) -> Result<NamedFeatureSet, ManifestError> {
    let expected = "an object with name, node_features and config_features";
    let found = or_not_set(written);
    let set = written.and_then(|written| WrittenFeatureSet::deserialize(written).ok());
    let set = require_field(set, "feature_set", &found, expected)?;
    let set = NamedFeatureSet::new(set.name, set.node_features, set.config_features);
    set.map_err(|error| ManifestError::Field {
        field: "feature_set",
        found: shortened(&found),
        expected: format!("names that are valid: {error}"),
    })
}

fn or_not_set(written: Option<&Value>) -> String {
    written.map_or("not set".to_owned(), Value::to_string)
}

impl ModelKind {
    /// Whether the first configurations of a batch have the same scores without the others.
    #[must_use]
    pub fn allows_partial(&self) -> bool {
        match self {
            Self::Segment(_) | Self::Absent => true,
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
            Self::Absent => "none",
        })
    }
}

#[cfg(test)]
mod tests;
