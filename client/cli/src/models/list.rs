//! The list of models, and how well each version ranks what clients measured.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    mem,
};

use clap::builder::styling::Style;
use hlorank_client::v1;
use hlorank_graph::{Digest, Task};
use serde::Serialize;

use crate::output::{BAD, GOOD, PAST, PENDING, Table, decimals, grouped, or_dash, percent};

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
    rejection: Option<v1::ModelRejection>,
    #[serde(skip_serializing_if = "String::is_empty")]
    waits_for: String,
    pinned: bool,
    canary_percent: u32,
    folder_gone: bool,
    #[serde(flatten)]
    artifact: ArtifactReport,
    live_quality: Vec<v1::LiveQuality>,
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
    feature_set: Option<v1::FeatureSet>,
    training_data_digest: String,
    measured_quality: BTreeMap<String, f64>,
    licence: String,
}

impl ModelsReport {
    pub(super) fn new(models: Vec<v1::Model>) -> Self {
        Self {
            models: models.into_iter().map(ModelReport::from).collect(),
        }
    }
}

impl From<v1::Model> for ModelReport {
    fn from(mut model: v1::Model) -> Self {
        let state = model.state();
        // `serving` for `MODEL_STATE_SERVING`
        let name = state.as_str_name().trim_start_matches("MODEL_STATE_");
        Self {
            name: mem::take(&mut model.name),
            version: model.version,
            state: name.to_lowercase(),
            state_since: model.state_since.map(|since| since.to_string()),
            rejection: model.rejection.take(),
            waits_for: mem::take(&mut model.waits_for),
            pinned: model.pinned,
            canary_percent: model.canary_percent,
            folder_gone: model.folder_gone,
            live_quality: mem::take(&mut model.live_quality),
            artifact: model.into(),
            style: match state {
                v1::ModelState::Discovered
                | v1::ModelState::Validating
                | v1::ModelState::Warming => PENDING,
                v1::ModelState::Serving => GOOD,
                v1::ModelState::Rejected => BAD,
                v1::ModelState::Unloaded => PAST,
                v1::ModelState::Retained | v1::ModelState::Unspecified => Style::new(),
            },
        }
    }
}

impl From<v1::Model> for ArtifactReport {
    fn from(model: v1::Model) -> Self {
        // The text is empty if the bytes are not a digest.
        let hexadecimal = |bytes: &[u8]| {
            let digest = bytes.try_into().map(|bytes| Digest(bytes).to_string());
            digest.unwrap_or_default()
        };
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
            feature_set: model.feature_set,
            training_data_digest: hexadecimal(&model.training_data_digest),
            // A map of the wire format has no order. Sorted names make the report reproducible.
            measured_quality: model.measured_quality.into_iter().collect(),
            licence: model.licence,
        }
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

impl ModelReport {
    fn cells(&self) -> [String; 9] {
        // A version that was rejected before its manifest was read has neither of these texts.
        let known = |text: &str| or_dash(Some(text).filter(|text| !text.is_empty()));
        let artifact = &self.artifact;
        let canary = format!("canary, {} %", self.canary_percent);
        let notes = [
            (self.pinned, "pinned"),
            (self.canary_percent > 0, &canary),
            (self.folder_gone, "folder removed"),
        ];
        let notes = notes.into_iter().filter(|(is_so, _)| *is_so);
        let notes: Vec<&str> = notes.map(|(_, note)| note).collect();
        let state = match notes.join(", ") {
            notes if notes.is_empty() => self.state.clone(),
            notes => format!("{} ({notes})", self.state),
        };
        [
            self.name.clone(),
            self.version.to_string(),
            state,
            or_dash(artifact.default_for_task.then_some("yes")),
            artifact.task.clone(),
            known(&artifact.architecture),
            // A whole-graph model has no embeddings.
            or_dash(Some(artifact.embedding_size).filter(|size| *size > 0)),
            known(&artifact.licence),
            decimals(artifact.measured_quality.get("kendall_tau").copied(), 3),
        ]
    }
}

/// Returns how well a version ranks what was measured on a target.
fn quality_cells(version: String, quality: &v1::LiveQuality) -> [String; 8] {
    let error = quality.time_error_ratio;
    [
        version,
        quality.target.clone(),
        grouped(quality.graphs as usize),
        grouped(quality.configs as usize),
        format!("{:.3}", quality.kendall_tau),
        percent(quality.ordered_pairs),
        percent(quality.top_pick_regret),
        or_dash(error.map(|ratio| format!("{ratio:.2} x"))),
    ]
}

impl Display for ModelsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.models.is_empty() {
            return writeln!(formatter, "the server has no models");
        }
        let mut table = Table::new(&[
            "name",
            ">version",
            "state",
            "default",
            "task",
            "architecture",
            ">D",
            "licence",
            ">Kendall tau",
        ]);
        for model in &self.models {
            table.styled_row(model.style, model.cells());
        }
        write!(formatter, "{table}")?;
        // A version has a measure for each target, so these are rows of a table of their own.
        let mut table = Table::new(&[
            "on reported measurements",
            "target",
            ">graphs",
            ">configurations",
            ">Kendall tau",
            ">ordered pairs",
            ">top pick slower",
            ">time error",
        ]);
        let reference = |model: &ModelReport| format!("{}@{}", model.name, model.version);
        for model in &self.models {
            for quality in &model.live_quality {
                table.row(quality_cells(reference(model), quality));
            }
        }
        // A server without reported measurements gets no table with a header alone.
        if !table.rows.is_empty() {
            write!(formatter, "\n{table}")?;
        }
        for model in &self.models {
            if let Some(set) = &model.artifact.feature_set {
                let reference = reference(model);
                let nodes = columns(&set.node_features);
                let configs = columns(&set.config_features);
                let set = &set.name;
                write!(
                    formatter,
                    "\n{reference} takes the feature set {set}: {nodes}; configurations: {configs}"
                )?;
            }
        }
        for model in self
            .models
            .iter()
            .filter(|model| !model.waits_for.is_empty())
        {
            let reference = reference(model);
            write!(
                formatter,
                "\n{reference} is not loaded: {}",
                model.waits_for
            )?;
        }
        // Rejections are near the end, which is what a terminal shows of a long list.
        for model in &self.models {
            if let Some(v1::ModelRejection { reason, message }) = &model.rejection {
                let reference = reference(model);
                write!(formatter, "\n{reference} was rejected, {reason}: {message}")?;
            }
        }
        Ok(())
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
