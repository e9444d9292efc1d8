use std::{
    collections::BTreeMap,
    fmt::{self, Display},
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
    /// What is never loaded, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<Vec<IgnoredReport>>,
}

/// A path in the model folder that is never loaded.
#[derive(Debug, Serialize)]
struct IgnoredReport {
    path: String,
    reason: String,
}

/// One version of one model.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the report"
)]
struct ModelReport {
    name: String,
    version: u64,
    state: String,
    state_since: Option<String>,
    rejection: Option<RejectionReport>,
    pinned: bool,
    canary_percent: u32,
    folder_gone: bool,
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
    live_quality: Vec<LiveQuality>,
    #[serde(skip)]
    style: Style,
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
            ignored: None,
        }
    }
}

impl ModelsReport {
    pub(super) fn with_ignored(self, ignored: Option<Vec<v1::IgnoredPath>>) -> Self {
        let report = |v1::IgnoredPath { path, reason }| IgnoredReport { path, reason };
        let ignored = ignored.map(|paths| paths.into_iter().map(report).collect());
        Self { ignored, ..self }
    }
}

impl From<v1::Model> for ModelReport {
    fn from(model: v1::Model) -> Self {
        Self {
            state: state_name(model.state()),
            style: state_style(model.state()),
            state_since: model.state_since.map(|since| since.to_string()),
            rejection: model
                .rejection
                .as_ref()
                .map(|v1::ModelRejection { reason, message }| RejectionReport {
                    reason: reason.clone(),
                    message: message.clone(),
                }),
            pinned: model.pinned,
            canary_percent: model.canary_percent,
            folder_gone: model.folder_gone,
            task: task_name(model.task),
            digest: hexadecimal(&model.digest),
            feature_digest: hexadecimal(&model.feature_digest),
            training_data_digest: hexadecimal(&model.training_data_digest),
            feature_set: model.feature_set.map(FeatureSetReport::from),
            measured_quality: model.measured_quality.into_iter().collect(),
            name: model.name,
            version: model.version,
            architecture: model.architecture,
            kind: model.kind,
            default_for_task: model.default_for_task,
            embedding_size: model.embedding_size,
            buckets: model.buckets,
            chunk_configs: model.chunk_configs,
            pad_value: model.pad_value,
            batch_dependent: model.batch_dependent,
            licence: model.licence,
            live_quality: model
                .live_quality
                .into_iter()
                .map(LiveQuality::from)
                .collect(),
        }
    }
}

impl From<v1::FeatureSet> for FeatureSetReport {
    fn from(
        v1::FeatureSet {
            name,
            node_features,
            config_features,
        }: v1::FeatureSet,
    ) -> Self {
        Self {
            name,
            node_features,
            config_features,
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
        let dash = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                text.to_owned()
            }
        };
        [
            self.name.clone(),
            self.version.to_string(),
            self.state_cell(),
            if self.default_for_task { "yes" } else { "-" }.to_owned(),
            self.task.clone(),
            dash(&self.architecture),
            // A whole-graph model has no embeddings.
            if self.embedding_size == 0 {
                "-".to_owned()
            } else {
                self.embedding_size.to_string()
            },
            dash(&self.licence),
            or_dash(self.measured_quality.get("kendall_tau").copied(), 3),
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

impl ModelsReport {
    fn write_ignored(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ignored.as_deref() {
            None => Ok(()),
            Some([]) => write!(formatter, "\neverything in the model folder is a version"),
            Some(paths) => paths.iter().try_for_each(|IgnoredReport { path, reason }| {
                write!(formatter, "\n{path} is never loaded: {reason}")
            }),
        }
    }
}

impl Display for ModelsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.models.is_empty() {
            writeln!(formatter, "the server has no models")?;
            return self.write_ignored(formatter);
        }
        let mut table = Table::new(&COLUMNS);
        for model in &self.models {
            table.styled_row(model.style, model.cells());
        }
        write!(formatter, "{table}")?;
        let live = self.models.iter().flat_map(|model| {
            let qualities = model.live_quality.iter();
            qualities.map(move |quality| (model.reference(), quality))
        });
        live_quality::write(formatter, live)?;
        for model in &self.models {
            if let Some(set) = &model.feature_set {
                let reference = model.reference();
                let nodes = columns(&set.node_features);
                let configs = columns(&set.config_features);
                let set = &set.name;
                write!(
                    formatter,
                    "\n{reference} takes the feature set {set}: {nodes}; configurations: {configs}"
                )?;
            }
        }
        for model in &self.models {
            if let Some(RejectionReport { reason, message }) = &model.rejection {
                let reference = model.reference();
                write!(formatter, "\n{reference} was rejected, {reason}: {message}")?;
            }
        }
        self.write_ignored(formatter)
    }
}

/// Names a few columns. Of many, `--json` has the names.
fn columns(names: &[String]) -> String {
    const NAMED: usize = 12;
    match names {
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
