//! `hlorank measurements export`: writes files of measurements, one for each graph on each target.

use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
    fs, mem,
    path::PathBuf,
};

use clap::Args;
use hlorank_client::{
    Client, ClientError,
    v1::{self, ExportedMeasurements, GraphMeasurements, ListMeasurementsRequest, graph::Source},
};
use hlorank_graph::{
    ConfigurationError, Configurations, Digest, EncodedBatch, FeatureFile, FileError, Graph,
    GraphSource, MeasuredGraph, Measurements, Task,
};
use prost::Message as _;
use serde::Serialize;

use super::age::Age;
use crate::{
    configuration::FILE_LIMITS,
    error::CommandError,
    failure::Failure,
    output::{Format, Table, counted, grouped, printable},
    server::Server,
};

/// Which measurements to write, and where.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder to write to
    ///
    /// It gets TARGET/TASK/HASH.npz for each graph on each target. `training train TASK --data FOLDER/TARGET/TASK` reads
    /// them, `hlorank eval` and `hlorank measurements import` too.
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Write only measurements of this target
    ///
    /// By default, those of all targets.
    #[arg(long, value_name = "NAME", default_value_t, hide_default_value = true)]
    target: String,
    #[command(flatten)]
    age: Age,
    #[command(flatten)]
    server: Server,
}

/// What was written.
#[derive(Debug, Default, Serialize)]
struct ExportReport {
    files: Vec<ExportedFile>,
    failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct ExportedFile {
    path: String,
    target: String,
    task: String,
    graph: String,
    measurements: usize,
    trainable: bool,
    /// Why training cannot read it.
    obstacle: Option<String>,
}

/// What a file holds the measurements of, in the order in which servers list them.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    target: String,
    graph: Digest,
}

/// The measurements of a replica, a page at a time.
struct ReplicaMeasurements {
    endpoint: String,
    client: Client,
    page: VecDeque<GraphMeasurements>,
    /// Asks for the next page; `None` after the last.
    next: Option<ListMeasurementsRequest>,
}

/// Why training reads no fusions of an export.
const FUSIONS: &str =
    "training takes fusions from programs that `training collect fusion` measures";

/// Maximum number of characters of a target's name in a path.
const MAX_FOLDER: usize = 40;

impl Export {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let request = of_target(&self.target, &self.age)?;
        let (mut replicas, mut report) = (Vec::new(), ExportReport::default());
        for (endpoint, connection) in self.server.connect_each().await? {
            match connection {
                Ok(client) => replicas.push(ReplicaMeasurements {
                    endpoint,
                    client,
                    page: VecDeque::new(),
                    next: Some(request.clone()),
                }),
                Err(error) => report.failures.push(Failure::new(endpoint, error.into())),
            }
        }
        // Servers list by target and graph, and a graph may continue on the next page and at the next replica. One graph is written at
        // a time, so its measurements alone are in memory.
        while let Some(key) = next_graph(&mut replicas, &mut report).await {
            let (mut parts, mut holders) = (Vec::new(), Vec::new());
            for replica in &mut replicas {
                let held = parts.len();
                // If a page cannot be had, the replica fails again at the next graph, and is reported then.
                while let Ok(Some(next)) = replica.next_key().await
                    && next == key
                {
                    // Replicas that share a database list the same.
                    let part = replica.page.pop_front();
                    parts.extend(part.filter(|part| !parts.contains(part)));
                }
                if parts.len() > held {
                    holders.push(replica.client.clone());
                }
            }
            match self.write(&key, &holders, parts).await {
                Ok(file) => report.files.push(file),
                Err(error) => {
                    let Key { target, graph } = key;
                    let subject = format!("graph {graph} on {target}");
                    report.failures.push(Failure::new(subject, error));
                }
            }
        }
        if !report.files.is_empty() || report.failures.len() != 1 {
            format.print(&report)?;
        }
        Failure::check(report.failures, report.files.len())
    }

    /// Writes the file of all measurements of one graph on one target, of which there is at least one part.
    async fn write(
        &self,
        Key { target, graph }: &Key,
        holders: &[Client],
        parts: Vec<GraphMeasurements>,
    ) -> Result<ExportedFile, CommandError> {
        let task = task_of(&parts).map_err(|source| unreadable(graph.to_string(), source))?;
        let mut message = None;
        for client in holders {
            message = message.or(client.measured_graph(target, *graph).await?);
        }
        let trained = match &message {
            Some(message) => trained(message, task, *graph, &parts),
            None => Err("the server keeps no graph of this size".to_owned()),
        };
        let path = self.out.join(path_of(target, task, *graph));
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.map_err(|error| CommandError::written(&path, error))?;
        let obstacle = match &trained {
            // `hlorank eval` reads these.
            Ok(_) if task == Task::Fusion => Some(FUSIONS.to_owned()),
            Ok(_) => None,
            Err(obstacle) => Some(obstacle.clone()),
        };
        let report = ExportedFile {
            path: path.display().to_string(),
            target: target.clone(),
            task: task.to_string(),
            graph: graph.to_string(),
            measurements: parts.iter().map(|part| part.seconds.len()).sum(),
            trainable: obstacle.is_none(),
            obstacle,
        };
        // Without the graph, the hash still says what was measured.
        let by_hash = || v1::Graph {
            source: Some(Source::GraphHash(graph.0.to_vec().into())),
            task: v1::Task::from(task).into(),
            configurable_nodes: Vec::new(),
        };
        let exported = ExportedMeasurements {
            graph: Some(message.unwrap_or_else(by_hash)),
            measurements: parts,
        };
        FeatureFile::write_exported(&path, trained.as_ref().ok(), &exported.encode_to_vec())?;
        Ok(report)
    }
}

/// Returns the next graph of all replicas, and leaves out those that have no more or fail.
async fn next_graph(
    replicas: &mut Vec<ReplicaMeasurements>,
    report: &mut ExportReport,
) -> Option<Key> {
    let mut first = None;
    for mut replica in mem::take(replicas) {
        match replica.next_key().await {
            Ok(None) => {}
            Ok(next) => {
                first = first.into_iter().chain(next).min();
                replicas.push(replica);
            }
            Err(error) => {
                let failure = Failure::new(replica.endpoint, error.into());
                report.failures.push(failure);
            }
        }
    }
    first
}

impl ReplicaMeasurements {
    /// Returns what the next measurements are of; nothing after the last.
    async fn next_key(&mut self) -> Result<Option<Key>, ClientError> {
        while self.page.is_empty()
            && let Some(request) = &mut self.next
        {
            let listed = self.client.list_measurements(request).await?;
            self.page = listed.graphs.into();
            request.page_token = listed.next_page_token;
            self.next = self.next.take().filter(|next| !next.page_token.is_empty());
        }
        Ok(self.page.front().map(|part| Key {
            target: part.target.clone(),
            graph: graph_of(part),
        }))
    }
}

/// Returns what training reads: the graph of a message, and those of its configurations that were measured. The error says why
/// there is nothing to train on.
fn trained(
    message: &v1::Graph,
    task: Task,
    hash: Digest,
    parts: &[GraphMeasurements],
) -> Result<MeasuredGraph, String> {
    let graph = Graph::of_message(message, task, &FILE_LIMITS);
    let graph = graph.map_err(|error| error.to_string())?;
    // Repeated configurations stay, and training takes the mean of their times.
    let (mut configs, mut run_times) = (Vec::new(), Vec::new());
    for part in parts {
        let batch = read_configurations(part, &graph).map_err(|error| error.to_string())?;
        for (config, &seconds) in part.seconds.iter().enumerate() {
            if seconds > 0.0 {
                configs.push(batch.canonical(config));
                run_times.push(nanoseconds(seconds));
            }
        }
    }
    if configs.is_empty() {
        return Err("every measurement failed".to_owned());
    }
    if graph.program().is_some() && !matches!(message.source, Some(Source::HloModule(_))) {
        return Err(FUSIONS.to_owned());
    }
    let configs = configs.iter().map(Vec::as_slice);
    let configurations = Configurations::from_canonical(task, configs, &FILE_LIMITS);
    let configurations = configurations.map_err(|error| error.to_string())?;
    Ok(MeasuredGraph {
        name: hash.to_string(),
        source: match &message.source {
            Some(Source::HloModule(module)) => GraphSource::HloModule(module.to_vec()),
            _ => GraphSource::Features,
        },
        graph,
        node_splits: Vec::new(),
        nodes: Vec::new(),
        measurements: Some(Measurements {
            numbers: (0..configurations.len()).collect(),
            configurations,
            run_times,
            normalizers: None,
            default: None,
            skipped: 0,
        }),
    })
}

/// Asks for the first measurements that `--target`, which is empty by default, and an age select.
pub(super) fn of_target(target: &str, age: &Age) -> Result<ListMeasurementsRequest, CommandError> {
    Ok(ListMeasurementsRequest {
        target: target.to_owned(),
        reported_before: age.reported_before()?,
        ..ListMeasurementsRequest::default()
    })
}

/// Returns the graph of some measurements.
pub(super) fn graph_of(part: &GraphMeasurements) -> Digest {
    // A hash of another length, which no server sends, becomes one that no graph has.
    let hash = part.graph_hash.as_ref().try_into();
    hash.map_or(Digest([0; 32]), Digest)
}

/// Returns the path of a file below the folder of an export.
fn path_of(target: &str, task: Task, graph: Digest) -> PathBuf {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-_".contains(letter);
    let letters = target.chars().take(MAX_FOLDER);
    let folder = letters.map(|letter| if is_allowed(letter) { letter } else { '_' });
    // Targets whose names are cut or replaced to the same letters have folders of their own.
    let digest = Digest::of_parts("hlorank 2026 exported target", [target.as_bytes()]).to_string();
    // With the digest behind it, the name `..` leads to no other folder.
    let folder = format!("{}-{}", folder.collect::<String>(), &digest[..8]);
    [folder.as_str(), task.name(), &format!("{graph}.npz")]
        .iter()
        .collect()
}

/// Returns what was tuned, which is the same for all measurements of a graph.
fn task_of(parts: &[GraphMeasurements]) -> Result<Task, ConfigurationError> {
    let batch = encoded(&parts[0])?;
    Ok(batch.task())
}

/// Reads the configurations of some measurements of a graph.
pub(super) fn read_configurations(
    part: &GraphMeasurements,
    graph: &Graph,
) -> Result<Configurations, ConfigurationError> {
    encoded(part)?.read(graph.task(), graph.configurable(), &FILE_LIMITS)
}

fn encoded(part: &GraphMeasurements) -> Result<EncodedBatch, ConfigurationError> {
    // Configurations are read from an encoded batch, which is how a server receives them.
    let batch = part.batch.clone().unwrap_or_default();
    EncodedBatch::parse(&batch.encode_to_vec().into())?.ok_or(ConfigurationError::Empty)
}

fn unreadable(path: String, source: ConfigurationError) -> FileError {
    FileError::Configuration {
        path,
        module: 0,
        source,
    }
}

// Training takes a time of 0 for none, so a measured time is at least 1.
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounded to the nearest, and at most 1e18"
)]
fn nanoseconds(seconds: f64) -> i64 {
    ((seconds * 1e9).round() as i64).max(1)
}

impl Display for ExportReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        if self.files.is_empty() && self.failures.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
        if !self.files.is_empty() {
            let mut table = Table::new(&["file", "target", ">measurements", "for training"]);
            for file in &self.files {
                let trainable = if file.trainable { "yes" } else { "no" };
                table.row([
                    file.path.clone(),
                    file.target.clone(),
                    grouped(file.measurements),
                    trainable.to_owned(),
                ]);
            }
            writeln!(formatter, "{table}")?;
        }
        for file in &self.files {
            if let Some(obstacle) = &file.obstacle {
                let path = printable(&file.path);
                writeln!(formatter, "{path} is not for training: {obstacle}")?;
            }
        }
        Failure::write_all(&self.failures, formatter)?;
        let all = self.files.iter().map(|file| file.measurements).sum();
        let measurements = counted(all, "measurement");
        let files = counted(self.files.len(), "file");
        write!(formatter, "{measurements} in {files}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_nanoseconds_and_at_least_one() {
        assert_eq!(
            [1.5e-3, 1e-12, 2.0].map(nanoseconds),
            [1_500_000, 1, 2_000_000_000]
        );
    }

    #[test]
    fn targets_have_folders_of_their_own() {
        let path = |target: &str| {
            let path = path_of(target, Task::Tile, Digest([7; 32]));
            path.display().to_string()
        };
        assert!(
            path("../a board").starts_with(".._a_board-"),
            "{}",
            path("../a board")
        );
        assert_ne!(path("a board"), path("a_board"));
    }
}
