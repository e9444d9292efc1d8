//! Files of measurements, one for each graph on each target.

use std::path::{Path, PathBuf};

use hlorank_client::v1::{self, ExportedMeasurements, GraphMeasurements, graph::Source};
use hlorank_graph::{
    ConfigurationError, Configurations, Digest, EncodedBatch, FeatureFile, FileError, Graph,
    GraphSource, MeasuredGraph, Measurements, Task,
};
use prost::Message as _;

use crate::cli::{error::CommandError, input::FILE_LIMITS};

/// The measurements of one graph on one target.
pub(super) struct ExportedFile {
    graph: Option<v1::Graph>,
    hash: Digest,
    task: Task,
    /// Distinct measured configurations that succeeded, and their mean run times in nanoseconds.
    configs: Vec<Vec<u8>>,
    nanoseconds: Vec<i64>,
    measurements: Vec<GraphMeasurements>,
}

/// Maximum number of characters of a target's name in a path.
const MAX_FOLDER: usize = 40;

impl ExportedFile {
    /// Takes all measurements of one graph on one target, and the graph if the server keeps it.
    pub(super) fn new(
        hash: Digest,
        graph: Option<v1::Graph>,
        measurements: Vec<GraphMeasurements>,
    ) -> Result<Self, FileError> {
        // `add_times` sets the task by the configurations, which all measurements have.
        let mut file = Self {
            graph,
            hash,
            task: Task::Tile,
            configs: Vec::new(),
            nanoseconds: Vec::new(),
            measurements: Vec::new(),
        };
        for part in &measurements {
            let added = file.add_times(part);
            added.map_err(|source| unreadable(hash.to_string(), source))?;
        }
        file.measurements = measurements;
        Ok(file)
    }

    /// Adds the configurations that have a time.
    fn add_times(&mut self, part: &GraphMeasurements) -> Result<(), ConfigurationError> {
        let graph = self.graph.as_ref();
        let slots = graph.map_or(&[][..], |graph| &graph.configurable_nodes);
        let Some(batch) = read_configurations(part, slots)? else {
            return Ok(());
        };
        self.task = batch.task();
        for (config, &seconds) in part.seconds.iter().enumerate() {
            if seconds > 0.0 {
                self.configs.push(batch.canonical(config));
                self.nanoseconds.push(nanoseconds(seconds));
            }
        }
        Ok(())
    }

    /// Its path below the folder of an export.
    pub(super) fn path(&self) -> PathBuf {
        let first = self.measurements.first();
        let target = first.map_or("", |part| &part.target);
        let folder: String = target.chars().take(MAX_FOLDER).map(allowed).collect();
        // Targets whose names are cut or replaced to the same letters have folders of their own.
        let digest =
            Digest::of_parts("hlorank 2026 exported target", [target.as_bytes()]).to_string();
        // With the digest behind it, the name `..` leads to no other folder.
        let folder = format!("{folder}-{}", &digest[..8]);
        let file = format!("{}.npz", self.hash);
        [folder.as_str(), self.task.name(), &file].iter().collect()
    }

    pub(super) fn task(&self) -> Task {
        self.task
    }

    pub(super) fn hash(&self) -> Digest {
        self.hash
    }

    /// Number of measurements.
    pub(super) fn measurements(&self) -> usize {
        let parts = self.measurements.iter();
        parts.map(|part| part.seconds.len()).sum()
    }

    /// Whether training can read it: the graph is there, and a configuration was measured.
    pub(super) fn is_trainable(&self) -> bool {
        self.graph.is_some() && !self.configs.is_empty()
    }

    pub(super) fn write(self, path: &Path) -> Result<(), CommandError> {
        let trainable = self.is_trainable().then(|| self.measured(path));
        let measured = trainable.transpose()?;
        // Without the graph, the hash still says what was measured.
        let by_hash = || v1::Graph {
            source: Some(Source::GraphHash(self.hash.0.to_vec().into())),
            task: v1::Task::from(self.task).into(),
            configurable_nodes: Vec::new(),
        };
        let exported = ExportedMeasurements {
            graph: Some(self.graph.unwrap_or_else(by_hash)),
            measurements: self.measurements,
        };
        let exported = exported.encode_to_vec();
        FeatureFile::write_exported(path, measured.as_ref(), &exported)?;
        Ok(())
    }

    /// The graph as training reads it. Repeated configurations stay, and training takes their mean.
    fn measured(&self, path: &Path) -> Result<MeasuredGraph, FileError> {
        let message = self.graph.clone().unwrap_or_default();
        let graph = Graph::of_message(&message, self.task, &FILE_LIMITS);
        let graph = graph.map_err(|source| FileError::Graph {
            path: path.display().to_string(),
            module: 0,
            source,
        })?;
        let measurements = self.run_times();
        let measurements =
            measurements.map_err(|source| unreadable(path.display().to_string(), source))?;
        Ok(MeasuredGraph {
            name: self.hash.to_string(),
            source: GraphSource::Features,
            graph,
            node_splits: Vec::new(),
            nodes: Vec::new(),
            measurements: Some(measurements),
        })
    }

    fn run_times(&self) -> Result<Measurements, ConfigurationError> {
        let configs = self.configs.iter().map(Vec::as_slice);
        let configurations = Configurations::from_canonical(self.task, configs, &FILE_LIMITS)?;
        Ok(Measurements {
            numbers: (0..configurations.len()).collect(),
            configurations,
            run_times: self.nanoseconds.clone(),
            normalizers: None,
            default: None,
            skipped: 0,
        })
    }
}

/// Reads the configurations of some measurements; `slots` holds the node of each slot. Returns
/// nothing if there are none.
pub(super) fn read_configurations(
    part: &GraphMeasurements,
    slots: &[u32],
) -> Result<Option<Configurations>, ConfigurationError> {
    // Configurations are read from an encoded batch, which is how a server receives them.
    let batch = part.batch.clone().unwrap_or_default();
    let Some(batch) = EncodedBatch::of(&batch.encode_to_vec().into())? else {
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

/// Replaces a character that a name of a folder should not have.
fn allowed(character: char) -> char {
    if character.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&character) {
        character
    } else {
        '_'
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
            let measurements = vec![GraphMeasurements {
                target: target.to_owned(),
                ..Default::default()
            }];
            let path = ExportedFile::new(Digest([7; 32]), None, measurements)
                .unwrap()
                .path();
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
