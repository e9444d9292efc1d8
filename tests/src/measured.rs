//! The measured graphs of the repository, and parts and wire forms of their configurations.
#![expect(
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "fixtures are part of the repository"
)]

use std::{fs, path::Path};

use hlorank_graph::{Configurations, GraphFile, Limits, MeasuredGraph, Task};
use hlorank_proto::v1::config_batch::Configs;

use crate::fixture;

/// Reads the graphs of a file.
#[must_use]
pub fn read_graphs(path: &Path) -> Vec<MeasuredGraph> {
    GraphFile::read(path, Task::Layout, &Limits::default())
        .unwrap_or_else(|error| panic!("{error}"))
        .graphs
}

/// Reads all measured graphs of the repository, some of each task.
#[must_use]
pub fn measured_graphs() -> Vec<MeasuredGraph> {
    let folder = fixture("measured");
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let graphs: Vec<MeasuredGraph> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .flat_map(|path| read_graphs(&path))
        .collect();
    assert!(
        graphs
            .iter()
            .any(|graph| graph.graph.task() == Task::Layout)
    );
    assert!(graphs.iter().any(|graph| graph.graph.task() == Task::Tile));
    graphs
}

/// Returns the measured configurations of a graph.
#[must_use]
pub fn configurations(graph: &MeasuredGraph) -> &Configurations {
    &graph
        .measurements
        .as_ref()
        .unwrap_or_else(|| panic!("{} was not measured", graph.name))
        .configurations
}

/// Returns a batch of the chosen configurations.
#[must_use]
pub fn part(
    configurations: &Configurations,
    chosen: impl IntoIterator<Item = usize>,
) -> Configurations {
    configurations.select(&chosen.into_iter().collect::<Vec<_>>())
}

/// Returns a batch in every wire form of its kind.
#[must_use]
pub fn forms(configurations: &Configurations, configurable: &[u32]) -> Vec<Configs> {
    configurations.to_forms(configurable)
}
