//! `manifest.json`: what an artifact says of itself.
//!
//! The file is read field by field, and each field is checked when it is read, so that a [`Manifest`] which exists is sound and a
//! refusal names the field, its value and what was expected.

use std::{collections::BTreeMap, fmt, sync::Arc};

use hlorank_adaptation::{Prior, ScoreUnit};
use hlorank_graph::{Digest, FeatureSet, NamedFeatureSet, Pad, Scope, Task, shortened};
use serde::Deserialize;
use serde_json::Value;

use super::{ModelFeatures, Rejection, onnx::Interface, target::Target};

mod fields;
mod segment;
mod whole_graph;

use fields::Fields;
pub use fields::MANIFEST_FILE;
pub use segment::SegmentSettings;
pub(super) use segment::{ENCODER, HEAD, SEGMENT};
pub(super) use whole_graph::MODEL;
pub use whole_graph::{Chunking, ModelNodes, Permutations, WholeGraphSettings};

/// Figures on held-out data: numbers by name, and how the data were held out.
pub type MeasuredQuality = BTreeMap<String, Value>;

/// What an artifact says of itself, checked.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Name of the model, and of the folder that holds its versions.
    pub name: String,
    /// Version, from 1, and name of its folder.
    pub version: u64,
    /// What the model scores.
    pub task: Task,
    /// How the model is built, such as `graphsage-transformer-segment`.
    pub architecture: String,
    /// How the model is evaluated.
    pub kind: ModelKind,
    /// The features that the model takes.
    pub features: ModelFeatures,
    /// The value that pads the sequence features.
    pub pad: Pad,
    /// The unit of the scores.
    pub unit: ScoreUnit,
    /// What its scores say of run times before any is measured.
    pub prior: Prior,
    /// What it was trained for; empty if the manifest does not say it.
    pub targets: Vec<Target>,
    /// SHA-256 of each file, in hexadecimal.
    pub files: BTreeMap<String, String>,
    /// SHA-256 of the training data.
    pub training_data_digest: Digest,
    /// Figures on held-out data.
    pub measured_quality: MeasuredQuality,
    /// SPDX licence expression.
    pub licence: String,
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

/// Newest manifest format that this server reads.
const SCHEMA: u64 = 1;

impl Manifest {
    /// Reads and checks a manifest.
    pub fn read(json: &[u8]) -> Result<Self, Rejection> {
        let fields = Fields::parse(json)?;
        // The format comes first: a newer one may have other fields.
        let schema = fields.required("schema", "1", Value::as_u64)?;
        if schema > SCHEMA {
            return Err(Rejection::new(
                "MANIFEST_NEWER",
                format!(
                    "{MANIFEST_FILE} has schema {schema}, this server reads up to {SCHEMA}; update the server"
                ),
            ));
        }
        let tasks = Task::ALL.map(Task::name).join(" or ");
        let task = fields.required("task", &tasks, |task| Task::from_name(task.as_str()?))?;
        let version = |version: &Value| version.as_u64().filter(|version| *version > 0);
        let files = fields.required("files", "SHA-256 of each file by name", |files| {
            BTreeMap::deserialize(files).ok()
        })?;
        let kind = match fields.text("kind")?.as_str() {
            "segment" => ModelKind::Segment(SegmentSettings::read(&fields, task, &files)?),
            "graph" => ModelKind::WholeGraph(WholeGraphSettings::read(&fields, task)?),
            _ => return Err(fields.refused("kind", "segment or graph")),
        };
        let (features, pad) = read_features(&fields, task, &kind)?;
        let unit = fields.optional("unit", "seconds, or not set", |unit| {
            (unit == "seconds").then_some(ScoreUnit::Seconds)
        })?;
        let unit = unit.unwrap_or_default();
        let prior = fields.optional(
            "prior",
            "an object with slope and spread, numbers above 0",
            |prior| {
                let prior = Prior::deserialize(prior).ok();
                prior.filter(|prior| prior.slope > 0.0 && prior.spread > 0.0)
            },
        )?;
        let measured_quality = fields.optional("measured_quality", "an object", |quality| {
            MeasuredQuality::deserialize(quality).ok()
        })?;
        Ok(Self {
            name: fields.text("name")?,
            version: fields.required("version", "1 or more", version)?,
            task,
            architecture: fields.text("architecture")?,
            kind,
            features,
            pad,
            unit,
            prior: prior.unwrap_or(Prior::of_unit(unit)),
            targets: fields
                .optional("targets", Target::EXPECTED, Target::read_all)?
                .unwrap_or_default(),
            files,
            training_data_digest: fields.required(
                "training_data_digest",
                "64 hexadecimal digits",
                |digest| Digest::from_hex(digest.as_str()?),
            )?,
            measured_quality: measured_quality.unwrap_or_default(),
            licence: fields.text("licence")?,
        })
    }

    /// What is said of the model that a feature set does not have: neither name nor version.
    pub(super) fn absent(set: Arc<NamedFeatureSet>) -> Self {
        Self {
            name: String::new(),
            version: 0,
            task: Task::FeatureSet,
            architecture: String::new(),
            kind: ModelKind::Absent,
            features: ModelFeatures::Named(set),
            pad: Pad::Zero,
            unit: ScoreUnit::None,
            prior: Prior::of_unit(ScoreUnit::None),
            targets: Vec::new(),
            files: BTreeMap::new(),
            training_data_digest: Digest([0; 32]),
            measured_quality: MeasuredQuality::new(),
            licence: String::new(),
        }
    }

    /// The ONNX files that the model consists of, with their interfaces.
    pub(super) fn onnx_files(&self) -> Vec<(&'static str, Interface)> {
        match &self.kind {
            ModelKind::Segment(settings) => settings.files(self.task, &self.features),
            ModelKind::WholeGraph(_) => WholeGraphSettings::files(self.task, &self.features),
            ModelKind::Absent => Vec::new(),
        }
    }
}

/// Reads the features of a model: the name and the columns of a set for `feature-set`, and the padding of sequences for all
/// other tasks.
fn read_features(
    fields: &Fields,
    task: Task,
    kind: &ModelKind,
) -> Result<(ModelFeatures, Pad), Rejection> {
    let written = fields.text("feature_digest")?;
    let found = Digest::from_hex(&written);
    let mismatch = |expected: Digest| {
        Rejection::new(
            "FEATURE_DIGEST_MISMATCH",
            format!(
                "{MANIFEST_FILE}: `feature_digest` is `{}`, expected `{expected}`, the digest of the featurization of \
                 this server, or of the manifest's own feature_set",
                shortened(&written)
            ),
        )
    };
    if task.kind().scope != Scope::EveryNode {
        fields.absent("feature_set", "none for models of HLO")?;
        let pad = fields.required("pad_value", "0 or -1", |pad| {
            Pad::from_value(i32::try_from(pad.as_i64()?).ok()?)
        })?;
        // The columns of loops are those of tiles, and are written for each row of a segment model.
        let takes_loops = task == Task::Tile && matches!(kind, ModelKind::Segment(_));
        let set = found.and_then(FeatureSet::by_digest);
        let set = set.filter(|set| takes_loops || !set.has_loops());
        let set = set.ok_or_else(|| mismatch(FeatureSet::TPUGRAPHS.digest()))?;
        return Ok((ModelFeatures::Instructions(set), pad));
    }
    fields.absent("pad_value", "none for a feature set")?;
    let expected = "an object with name, node_features and config_features";
    let set = fields.required("feature_set", expected, |set| {
        WrittenFeatureSet::deserialize(set).ok()
    })?;
    let set = NamedFeatureSet::new(set.name, set.node_features, set.config_features);
    let set = set.map_err(|error| {
        fields.refused("feature_set", &format!("names that are valid: {error}"))
    })?;
    // The manifest has both the set and its digest. If they differ, one of them is not what the
    // model was trained with.
    if found != Some(set.digest()) {
        return Err(mismatch(set.digest()));
    }
    Ok((ModelFeatures::Named(Arc::new(set)), Pad::Zero))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFeatureSet {
    name: String,
    node_features: Vec<String>,
    config_features: Vec<String>,
}

impl ModelKind {
    /// Whether the first configurations of a batch have the same scores without the others.
    pub fn allows_partial(&self) -> bool {
        match self {
            Self::Segment(_) | Self::Absent => true,
            Self::WholeGraph(settings) => !settings.needs_whole_batch(),
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Segment(_) => "segment",
            Self::WholeGraph(_) => "graph",
            Self::Absent => "none",
        })
    }
}

/// How much a model is doubted on a graph that it was not trained on.
#[cfg(test)]
mod tests;
