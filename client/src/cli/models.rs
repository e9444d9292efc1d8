//! `hlorank models`: what a server has loaded.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use clap::Args;
use hlorank_client::v1;
use hlorank_graph::Digest;
use serde::Serialize;

use super::{
    error::CommandError,
    output::{Align, Format, Table, or_dash},
    server::Server,
};

#[derive(Debug, Args)]
pub(crate) struct Models {
    #[command(flatten)]
    server: Server,
}

/// The models of a server.
#[derive(Debug, Serialize)]
struct ModelsReport {
    models: Vec<ModelReport>,
}

/// One version of one model.
#[derive(Debug, Serialize)]
struct ModelReport {
    name: String,
    version: u64,
    task: &'static str,
    architecture: String,
    kind: String,
    serving: bool,
    default_for_task: bool,
    digest: String,
    feature_digest: String,
    embedding_size: u32,
    buckets: Vec<u32>,
    chunk_configs: u32,
    pad_value: i32,
    batch_dependent: bool,
    training_data_digest: String,
    measured_quality: BTreeMap<String, f64>,
    licence: String,
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let models = self.server.connect().await?.list_models().await?;
        Ok(format.print(&ModelsReport { models: models.into_iter().map(ModelReport::from).collect() })?)
    }
}

impl From<v1::Model> for ModelReport {
    fn from(model: v1::Model) -> Self {
        Self {
            task: task_name(model.task()),
            digest: hexadecimal(&model.digest),
            feature_digest: hexadecimal(&model.feature_digest),
            training_data_digest: hexadecimal(&model.training_data_digest),
            measured_quality: model.measured_quality.into_iter().collect(),
            name: model.name,
            version: model.version,
            architecture: model.architecture,
            kind: model.kind,
            serving: model.serving,
            default_for_task: model.default_for_task,
            embedding_size: model.embedding_size,
            buckets: model.buckets,
            chunk_configs: model.chunk_configs,
            pad_value: model.pad_value,
            batch_dependent: model.batch_dependent,
            licence: model.licence,
        }
    }
}

fn task_name(task: v1::Task) -> &'static str {
    match task {
        v1::Task::Unspecified => "unspecified",
        v1::Task::Tile => "tile",
        v1::Task::Layout => "layout",
    }
}

/// A digest in hexadecimal digits; empty where it is not one.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.try_into().map(|bytes| Digest(bytes).to_string()).unwrap_or_default()
}

const COLUMNS: [(&str, Align); 10] = [
    ("name", Align::Left),
    ("version", Align::Right),
    ("task", Align::Left),
    ("architecture", Align::Left),
    ("serving", Align::Left),
    ("default", Align::Left),
    ("D", Align::Right),
    ("buckets", Align::Left),
    ("licence", Align::Left),
    ("Kendall tau", Align::Right),
];

impl ModelReport {
    fn cells(&self) -> [String; 10] {
        let yes = |flag| if flag { "yes" } else { "-" }.to_owned();
        let sizes: Vec<String> = self.buckets.iter().map(u32::to_string).collect();
        // A whole-graph model has neither.
        let [embedding_size, buckets] = match self.embedding_size {
            0 => ["-".to_owned(), "-".to_owned()],
            size => [size.to_string(), sizes.join(" ")],
        };
        [
            self.name.clone(),
            self.version.to_string(),
            self.task.to_owned(),
            self.architecture.clone(),
            yes(self.serving),
            yes(self.default_for_task),
            embedding_size,
            buckets,
            self.licence.clone(),
            or_dash(self.measured_quality.get("kendall_tau").copied(), 3),
        ]
    }
}

impl Display for ModelsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.models.is_empty() {
            return writeln!(formatter, "the server has no models");
        }
        let mut table = Table::new(&COLUMNS);
        self.models.iter().for_each(|model| table.row(model.cells()));
        write!(formatter, "{table}")
    }
}
