//! `hlorank measurements export`: writes files of measurements, one for each graph on each target.

use std::{
    fmt::{self, Display, Formatter},
    fs, mem,
    path::PathBuf,
};

use clap::Args;
use hlorank_client::{
    Client, MeasurementsOf,
    v1::{self, ExportedMeasurements, GraphMeasurements, graph::Source},
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
    output::{Format, Table, counted, grouped},
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
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    target: String,
    #[command(flatten)]
    age: Age,
    #[command(flatten)]
    server: Server,
}

/// What was written.
#[derive(Debug, Default, Serialize)]
struct ExportReport {
    files: Vec<FileReport>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    path: String,
    target: String,
    task: String,
    graph: String,
    measurements: usize,
    trainable: bool,
}

/// Maximum number of characters of a target's name in a path.
const MAX_FOLDER: usize = 40;

impl Export {
    pub(super) async fn run(self, format: Format) -> Result<(), CommandError> {
        let before = self.age.reported_before()?;
        let client = self.server.connect().await?;
        let (mut after, mut parts) = (Vec::new(), Vec::<GraphMeasurements>::new());
        let mut report = ExportReport::default();
        loop {
            let page = client
                .list_measurements_before(of_target(&self.target), before, &after)
                .await?;
            for part in page.graphs {
                // The server lists by target and graph, and a graph may continue on the next page. Its
                // file is complete when another graph begins, so the measurements of one graph are in
                // memory at a time.
                let key = |part: &GraphMeasurements| (part.target.clone(), graph_of(part));
                if parts.first().is_some_and(|first| key(first) != key(&part)) {
                    report
                        .files
                        .push(self.write(&client, mem::take(&mut parts)).await?);
                }
                parts.push(part);
            }
            after = page.next;
            if after.is_empty() {
                break;
            }
        }
        if !parts.is_empty() {
            report.files.push(self.write(&client, parts).await?);
        }
        Ok(format.print(&report)?)
    }

    /// Writes the file of all measurements of one graph on one target, of which there is at least one part.
    async fn write(
        &self,
        client: &Client,
        parts: Vec<GraphMeasurements>,
    ) -> Result<FileReport, CommandError> {
        let (target, hash) = (parts[0].target.clone(), graph_of(&parts[0]));
        let graph = client.measured_graph(&target, hash).await?;
        let slots = graph
            .as_ref()
            .map_or(&[][..], |graph| &graph.configurable_nodes);
        // Configurations that succeeded, and their mean run times. Repeated ones stay, and training
        // takes their mean.
        let (mut task, mut configs, mut run_times) = (Task::Tile, Vec::new(), Vec::new());
        for part in &parts {
            let read = read_configurations(part, slots);
            let Some(batch) = read.map_err(|source| unreadable(hash.to_string(), source))? else {
                continue;
            };
            task = batch.task();
            for (config, &seconds) in part.seconds.iter().enumerate() {
                if seconds > 0.0 {
                    configs.push(batch.canonical(config));
                    run_times.push(nanoseconds(seconds));
                }
            }
        }
        let path = self.out.join(path_of(&target, task, hash));
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.map_err(|source| CommandError::WrittenFile {
            path: path.display().to_string(),
            source,
        })?;
        // Training needs the graph itself, and a configuration that was measured.
        let trained = match &graph {
            Some(message) if !configs.is_empty() => {
                let name = || path.display().to_string();
                let graph = Graph::of_message(message, task, &FILE_LIMITS);
                let graph = graph.map_err(|source| FileError::Graph {
                    path: name(),
                    module: 0,
                    source,
                })?;
                let configs = configs.iter().map(Vec::as_slice);
                let configurations = Configurations::from_canonical(task, configs, &FILE_LIMITS);
                let configurations = configurations.map_err(|source| unreadable(name(), source))?;
                Some(MeasuredGraph {
                    name: hash.to_string(),
                    source: GraphSource::Features,
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
            _ => None,
        };
        let report = FileReport {
            path: path.display().to_string(),
            target,
            task: task.to_string(),
            graph: hash.to_string(),
            measurements: parts.iter().map(|part| part.seconds.len()).sum(),
            trainable: trained.is_some(),
        };
        // Without the graph, the hash still says what was measured.
        let by_hash = || v1::Graph {
            source: Some(Source::GraphHash(hash.0.to_vec().into())),
            task: v1::Task::from(task).into(),
            configurable_nodes: Vec::new(),
        };
        let exported = ExportedMeasurements {
            graph: Some(graph.unwrap_or_else(by_hash)),
            measurements: parts,
        };
        FeatureFile::write_exported(&path, trained.as_ref(), &exported.encode_to_vec())?;
        Ok(report)
    }
}

/// Returns which measurements `--target` selects, which is empty by default.
pub(super) fn of_target(target: &str) -> MeasurementsOf<'_> {
    match target {
        "" => MeasurementsOf::All,
        target => MeasurementsOf::Target(target),
    }
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

/// Reads the configurations of some measurements; `slots` holds the node of each slot. Returns
/// nothing if there are none.
pub(super) fn read_configurations(
    part: &GraphMeasurements,
    slots: &[u32],
) -> Result<Option<Configurations>, ConfigurationError> {
    // Configurations are read from an encoded batch, which is how a server receives them.
    let batch = part.batch.clone().unwrap_or_default();
    let Some(batch) = EncodedBatch::parse(&batch.encode_to_vec().into())? else {
        return Ok(None);
    };
    batch.read(batch.task(), slots, &FILE_LIMITS).map(Some)
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
        if self.files.is_empty() {
            return writeln!(formatter, "The server keeps no such measurements.");
        }
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
        let all = self.files.iter().map(|file| file.measurements).sum();
        let measurements = counted(all, "measurement");
        let files = counted(self.files.len(), "file");
        write!(formatter, "{table}\n{measurements} in {files}.")
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
