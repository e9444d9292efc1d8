//! The measured graphs of the repository, and parts and wire forms of their configurations.
#![expect(clippy::panic, clippy::missing_panics_doc, reason = "fixtures are part of the repository")]

use std::{fs, path::Path};

use hlorank_graph::{Configurations, GraphFile, LayoutBatchBuilder, Limits, MeasuredGraph, Task, TileBatch};
use hlorank_proto::v1::config_batch::Configs;

use crate::fixture;

/// Reads the graphs of a file.
#[must_use]
pub fn read_graphs(path: &Path) -> Vec<MeasuredGraph> {
    GraphFile::read(path, Task::Layout, &Limits::default()).unwrap_or_else(|error| panic!("{error}")).graphs
}

/// Reads all measured graphs of the repository, some of each task.
#[must_use]
pub fn measured_graphs() -> Vec<MeasuredGraph> {
    let folder = fixture("measured");
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let graphs: Vec<MeasuredGraph> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "pb"))
        .flat_map(|path| read_graphs(&path))
        .collect();
    assert!(graphs.iter().any(|graph| graph.graph.task() == Task::Layout));
    assert!(graphs.iter().any(|graph| graph.graph.task() == Task::Tile));
    graphs
}

/// Returns the measured configurations of a graph.
#[must_use]
pub fn configurations(graph: &MeasuredGraph) -> &Configurations {
    &graph.measurements.as_ref().unwrap_or_else(|| panic!("{} was not measured", graph.name)).configurations
}

/// Returns a batch of the chosen configurations.
#[must_use]
pub fn part(configurations: &Configurations, chosen: impl IntoIterator<Item = usize>) -> Configurations {
    let limits = Limits::default();
    match configurations {
        Configurations::Tile(batch) => {
            let mut part = TileBatch::default();
            let pushed = chosen.into_iter().try_for_each(|config| part.push(batch.get(config), &limits));
            pushed.unwrap_or_else(|error| panic!("{error}"));
            Configurations::Tile(part)
        }
        Configurations::Layout(batch) => {
            let mut part = LayoutBatchBuilder::new(batch.slots(), limits);
            for config in chosen {
                let entries: Vec<_> = (0..batch.slots()).map(|slot| batch.entry(config, slot)).collect();
                part.push(&entries).unwrap_or_else(|error| panic!("{error}"));
            }
            Configurations::Layout(part.build().unwrap_or_else(|error| panic!("{error}")))
        }
    }
}

/// Returns a batch in every wire form of its kind.
#[must_use]
pub fn forms(configurations: &Configurations, configurable: &[u32]) -> Vec<Configs> {
    match configurations {
        Configurations::Layout(batch) => vec![
            Configs::LayoutConfigs(batch.to_readable(configurable)),
            Configs::PackedLayoutConfigs(batch.to_packed()),
            Configs::DeltaLayoutConfigs(batch.to_delta()),
        ],
        Configurations::Tile(batch) => {
            let packed = batch.to_packed().unwrap_or_else(|| panic!("measured tiles pack"));
            vec![Configs::TileConfigs(batch.to_readable()), Configs::PackedTileConfigs(packed)]
        }
    }
}
