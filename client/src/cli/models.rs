//! `hlorank models`: which versions a server has, and which of them serve.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use clap::{Args, Subcommand, builder::styling::Style};
use hlorank_client::{AdminClient, ModelReference, ModelVersion, v1};
use hlorank_graph::Digest;
use serde::Serialize;

use super::{
    credentials::Credentials,
    error::CommandError,
    output::{Align, Format, Table, or_dash},
    server::{Server, address},
    style::{BAD, GOOD, PAST, PENDING},
};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Models {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    change: Option<Change>,
}

/// What changes which versions serve.
#[derive(Debug, Subcommand)]
enum Change {
    /// Look for new versions at once, and try rejected ones again
    Reload {
        #[command(flatten)]
        admin: Admin,
    },
    /// Have one version serve whatever newer ones there are, now and after a restart
    Pin {
        #[command(flatten)]
        admin: Admin,
        /// The version to serve
        #[arg(value_name = "NAME@VERSION", value_parser = numbered)]
        model: (String, u64),
    },
    /// Have the newest valid version serve again, for every graph
    Unpin {
        #[command(flatten)]
        admin: Admin,
        /// The model
        name: String,
    },
    /// Go back to the version that served before, or the next older one, and pin it
    Rollback {
        #[command(flatten)]
        admin: Admin,
        /// The model
        name: String,
    },
    /// Have a second version serve a part of the graphs beside the stable one, which is pinned
    Canary {
        #[command(flatten)]
        admin: Admin,
        /// The version to try; pin it to let it serve every graph
        #[arg(value_name = "NAME@VERSION", value_parser = numbered)]
        model: (String, u64),
        /// Of all graphs, 1 to 100; 0 ends the canary
        #[arg(long)]
        percent: u32,
    },
}

/// Where admin calls go.
#[derive(Debug, Args)]
struct Admin {
    /// Address of the server's admin listener (its --admin-listen)
    #[arg(long, value_name = "URL", env = "HLORANK_ADMIN_ENDPOINT", value_parser = address)]
    #[arg(default_value = "http://127.0.0.1:7072")]
    admin_endpoint: String,
    #[command(flatten)]
    credentials: Credentials,
}

/// `NAME@VERSION`.
fn numbered(text: &str) -> Result<(String, u64), String> {
    match text.parse::<ModelReference>() {
        Ok(ModelReference { name, version: ModelVersion::Number(version) }) => Ok((name, version)),
        _ => Err("a version is given as NAME@VERSION, such as tile-xla-cpu@3".to_owned()),
    }
}

impl Change {
    async fn make(self) -> Result<Vec<v1::Model>, CommandError> {
        Ok(match self {
            Self::Reload { admin } => admin.connect().await?.reload().await?,
            Self::Pin { admin, model: (name, version) } => admin.connect().await?.pin(&name, version).await?,
            Self::Unpin { admin, name } => admin.connect().await?.unpin(&name).await?,
            Self::Rollback { admin, name } => admin.connect().await?.rollback(&name).await?,
            Self::Canary { admin, model: (name, version), percent } => {
                admin.connect().await?.set_canary(&name, version, percent).await?
            }
        })
    }
}

impl Admin {
    async fn connect(&self) -> Result<AdminClient, CommandError> {
        Ok(AdminClient::connect(&self.admin_endpoint, self.credentials.connection()?).await?)
    }
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
    state: String,
    state_since: Option<String>,
    rejection: Option<RejectionReport>,
    pinned: bool,
    canary_percent: u32,
    task: &'static str,
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
    training_data_digest: String,
    measured_quality: BTreeMap<String, f64>,
    licence: String,
    #[serde(skip)]
    style: Style,
}

/// Why a version was rejected.
#[derive(Debug, Serialize)]
struct RejectionReport {
    reason: String,
    message: String,
}

impl Models {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let models = match self.change {
            Some(change) => change.make().await?,
            None => self.server.connect().await?.list_models().await?,
        };
        Ok(format.print(&ModelsReport { models: models.into_iter().map(ModelReport::from).collect() })?)
    }
}

impl From<v1::Model> for ModelReport {
    fn from(model: v1::Model) -> Self {
        Self {
            state: state_name(model.state()),
            style: state_style(model.state()),
            state_since: model.state_since.map(|since| since.to_string()),
            rejection: model.rejection.as_ref().map(|v1::ModelRejection { reason, message }| {
                RejectionReport { reason: reason.clone(), message: message.clone() }
            }),
            pinned: model.pinned,
            canary_percent: model.canary_percent,
            task: task_name(model.task()),
            digest: hexadecimal(&model.digest),
            feature_digest: hexadecimal(&model.feature_digest),
            training_data_digest: hexadecimal(&model.training_data_digest),
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
        }
    }
}

/// `serving` for `MODEL_STATE_SERVING`.
fn state_name(state: v1::ModelState) -> String {
    state.as_str_name().trim_start_matches("MODEL_STATE_").to_lowercase()
}

fn state_style(state: v1::ModelState) -> Style {
    match state {
        v1::ModelState::Discovered | v1::ModelState::Validating | v1::ModelState::Warming => PENDING,
        v1::ModelState::Serving => GOOD,
        v1::ModelState::Rejected => BAD,
        v1::ModelState::Unloaded => PAST,
        v1::ModelState::Retained | v1::ModelState::Unspecified => Style::new(),
    }
}

fn task_name(task: v1::Task) -> &'static str {
    match task {
        v1::Task::Unspecified => "-",
        v1::Task::Tile => "tile",
        v1::Task::Layout => "layout",
    }
}

/// A digest in hexadecimal digits; empty where it is not one.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.try_into().map(|bytes| Digest(bytes).to_string()).unwrap_or_default()
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
    fn cells(&self) -> [String; 9] {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        [
            self.name.clone(),
            self.version.to_string(),
            self.state_cell(),
            if self.default_for_task { "yes" } else { "-" }.to_owned(),
            self.task.to_owned(),
            dash(&self.architecture),
            // A whole-graph model has none.
            if self.embedding_size == 0 { "-".to_owned() } else { self.embedding_size.to_string() },
            dash(&self.licence),
            or_dash(self.measured_quality.get("kendall_tau").copied(), 3),
        ]
    }

    /// The state, and what chose it.
    fn state_cell(&self) -> String {
        let canary = (self.canary_percent > 0).then(|| format!("canary, {} %", self.canary_percent));
        let pinned = self.pinned.then(|| "pinned".to_owned());
        let notes: Vec<String> = pinned.into_iter().chain(canary).collect();
        if notes.is_empty() { self.state.clone() } else { format!("{} ({})", self.state, notes.join(", ")) }
    }
}

impl Display for ModelsReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.models.is_empty() {
            return writeln!(formatter, "the server has no models");
        }
        let mut table = Table::new(&COLUMNS);
        self.models.iter().for_each(|model| table.styled_row(model.style, model.cells()));
        write!(formatter, "{table}")?;
        for ModelReport { name, version, rejection, .. } in &self.models {
            if let Some(RejectionReport { reason, message }) = rejection {
                write!(formatter, "\n{name}@{version} was rejected, {reason}: {message}")?;
            }
        }
        Ok(())
    }
}
