use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    mem,
};

use clap::builder::styling::Style;
use hlorank_client::v1;
use hlorank_graph::{Digest, Task};
use serde::Serialize;

use super::live_quality::{self, LiveQuality};
use crate::cli::{
    output::{Align, Table, or_dash},
    style::{BAD, GOOD, PAST, PENDING},
};

/// The models of a server.
#[derive(Debug, Serialize)]
pub(super) struct ModelsReport {
    models: Vec<ModelReport>,
}

/// One version of one model.
#[derive(Debug, Serialize)]
struct ModelReport {
    name: String,
    version: u64,
    state: String,
    state_since: Option<String>,
    rejection: Option<RejectionReport>,
    pinned: bool,
    canary_percent: u32,
    folder_gone: bool,
    #[serde(flatten)]
    artifact: ArtifactReport,
    live_quality: Vec<LiveQuality>,
    #[serde(skip)]
    style: Style,
}

/// What the artifact of a version says.
#[derive(Debug, Serialize)]
struct ArtifactReport {
    task: String,
    architecture: String,
    kind: String,
    default_for_task: bool,
    digest: String,
    feature_digest: String,
    embedding_size: u32,
    buckets: Vec<u32>,
    chunk_configs: u32,
    pad_value: i32,
    batch_dependent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    feature_set: Option<FeatureSetReport>,
    training_data_digest: String,
    measured_quality: BTreeMap<String, f64>,
    licence: String,
}

/// The feature set that a model takes.
#[derive(Debug, Serialize)]
struct FeatureSetReport {
    name: String,
    node_features: Vec<String>,
    config_features: Vec<String>,
}

/// The reason why a version was rejected.
#[derive(Debug, Serialize)]
struct RejectionReport {
    reason: String,
    message: String,
}

impl From<Vec<v1::Model>> for ModelsReport {
    fn from(models: Vec<v1::Model>) -> Self {
        Self {
            models: models.into_iter().map(ModelReport::from).collect(),
        }
    }
}

impl From<v1::Model> for ModelReport {
    fn from(mut model: v1::Model) -> Self {
        let state = model.state();
        let live_quality = mem::take(&mut model.live_quality).into_iter();
        Self {
            name: mem::take(&mut model.name),
            version: model.version,
            state: state_name(state),
            state_since: model.state_since.map(|since| since.to_string()),
            rejection: model.rejection.take().map(RejectionReport::from),
            pinned: model.pinned,
            canary_percent: model.canary_percent,
            folder_gone: model.folder_gone,
            artifact: model.into(),
            live_quality: live_quality.map(LiveQuality::from).collect(),
            style: state_style(state),
        }
    }
}

impl From<v1::Model> for ArtifactReport {
    fn from(model: v1::Model) -> Self {
        Self {
            task: task_name(model.task),
            architecture: model.architecture,
            kind: model.kind,
            default_for_task: model.default_for_task,
            digest: hexadecimal(&model.digest),
            feature_digest: hexadecimal(&model.feature_digest),
            embedding_size: model.embedding_size,
            buckets: model.buckets,
            chunk_configs: model.chunk_configs,
            pad_value: model.pad_value,
            batch_dependent: model.batch_dependent,
            feature_set: model.feature_set.map(FeatureSetReport::from),
            training_data_digest: hexadecimal(&model.training_data_digest),
            // A map of the wire format has no order. Sorted names make the report reproducible.
            measured_quality: model.measured_quality.into_iter().collect(),
            licence: model.licence,
        }
    }
}

impl From<v1::ModelRejection> for RejectionReport {
    fn from(v1::ModelRejection { reason, message }: v1::ModelRejection) -> Self {
        Self { reason, message }
    }
}

impl From<v1::FeatureSet> for FeatureSetReport {
    fn from(set: v1::FeatureSet) -> Self {
        Self {
            name: set.name,
            node_features: set.node_features,
            config_features: set.config_features,
        }
    }
}

/// Returns the name of a state: `serving` for `MODEL_STATE_SERVING`.
fn state_name(state: v1::ModelState) -> String {
    state
        .as_str_name()
        .trim_start_matches("MODEL_STATE_")
        .to_lowercase()
}

fn state_style(state: v1::ModelState) -> Style {
    match state {
        v1::ModelState::Discovered | v1::ModelState::Validating | v1::ModelState::Warming => {
            PENDING
        }
        v1::ModelState::Serving => GOOD,
        v1::ModelState::Rejected => BAD,
        v1::ModelState::Unloaded => PAST,
        v1::ModelState::Retained | v1::ModelState::Unspecified => Style::new(),
    }
}

/// Returns the name of a task; `-` for a rejected version whose task is not known.
fn task_name(task: i32) -> String {
    match v1::Task::try_from(task) {
        Ok(v1::Task::Unspecified) => "-".to_owned(),
        // A newer server can have models of tasks that this program does not know.
        known => {
            let known = known.ok().and_then(Task::from_wire);
            known.map_or_else(|| format!("unknown ({task})"), |task| task.to_string())
        }
    }
}

/// Formats a digest in hexadecimal digits. The text is empty if the bytes are not a digest.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .try_into()
        .map(|bytes| Digest(bytes).to_string())
        .unwrap_or_default()
}

const COLUMNS: [(&str, Align); 9] = [
    ("name", Align::Left),
    ("version", Align::Right),
    ("state", Align::Left),
    ("default", Align::Left),
    ("task", Align::Left),
    ("architecture", Align::Left),
    ("D", Align::Right),
    ("licence", Align::Left),
    ("Kendall tau", Align::Right),
];

impl ModelReport {
    fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    fn cells(&self) -> [String; 9] {
        // A version that was rejected before its manifest was read has neither of these texts.
        let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        let artifact = &self.artifact;
        let default = if artifact.default_for_task {
            "yes"
        } else {
            "-"
        };
        [
            self.name.clone(),
            self.version.to_string(),
            self.state_cell(),
            default.to_owned(),
            artifact.task.clone(),
            dash(&artifact.architecture),
            // A whole-graph model has no embeddings.
            match artifact.embedding_size {
                0 => "-".to_owned(),
                size => size.to_string(),
            },
            dash(&artifact.licence),
            or_dash(artifact.measured_quality.get("kendall_tau").copied(), 3),
        ]
    }

    /// Returns the state, with notes if an operator pinned the version or made it a canary.
    fn state_cell(&self) -> String {
        let canary =
            (self.canary_percent > 0).then(|| format!("canary, {} %", self.canary_percent));
        let pinned = self.pinned.then(|| "pinned".to_owned());
        let gone = self.folder_gone.then(|| "folder removed".to_owned());
        let notes: Vec<String> = pinned.into_iter().chain(canary).chain(gone).collect();
        if notes.is_empty() {
            self.state.clone()
        } else {
            format!("{} ({})", self.state, notes.join(", "))
        }
    }
}

impl Display for ModelsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.models.is_empty() {
            writeln!(formatter, "the server has no models")
        } else {
            self.write_models(formatter)
        }
    }
}

impl ModelsReport {
    fn write_models(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&COLUMNS);
        for model in &self.models {
            table.styled_row(model.style, model.cells());
        }
        write!(formatter, "{table}")?;
        // A version has a measure for each target, so these are rows of a table of their own.
        let live = self.models.iter().flat_map(ModelReport::live_qualities);
        live_quality::write(formatter, live)?;
        self.models
            .iter()
            .try_for_each(|model| model.write_feature_set(formatter))?;
        // Rejections are near the end, which is what a terminal shows of a long list.
        self.models
            .iter()
            .try_for_each(|model| model.write_rejection(formatter))
    }
}

impl ModelReport {
    fn live_qualities(&self) -> impl Iterator<Item = (String, &LiveQuality)> {
        let qualities = self.live_quality.iter();
        qualities.map(|quality| (self.reference(), quality))
    }

    fn write_feature_set(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(set) = &self.artifact.feature_set else {
            return Ok(());
        };
        let reference = self.reference();
        let nodes = columns(&set.node_features);
        let configs = columns(&set.config_features);
        let set = &set.name;
        write!(
            formatter,
            "\n{reference} takes the feature set {set}: {nodes}; configurations: {configs}"
        )
    }

    fn write_rejection(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(RejectionReport { reason, message }) = &self.rejection else {
            return Ok(());
        };
        let reference = self.reference();
        write!(formatter, "\n{reference} was rejected, {reason}: {message}")
    }
}

/// Names a few columns. Of many, `--json` has the names.
fn columns(names: &[String]) -> String {
    const NAMED: usize = 12;
    match names {
        [] => "no columns".to_owned(),
        [first, .., last] if names.len() > NAMED => {
            format!("{} columns, {first} to {last}", names.len())
        }
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_columns_are_counted() {
        let names: Vec<String> = (0..40).map(|number| format!("c{number}")).collect();
        assert_eq!(columns(&names[..3]), "c0, c1, c2");
        assert_eq!(columns(&[]), "no columns");
        assert_eq!(columns(&names), "40 columns, c0 to c39");
    }

    #[test]
    fn an_unknown_task_is_shown_as_unknown() {
        assert_eq!(
            [0, 1, 2, 77].map(task_name),
            ["-", "tile", "layout", "unknown (77)"]
        );
    }
}
