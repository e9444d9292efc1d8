//! Files of measured graphs of the repository. Their content may change, so tests compare with what they hold.

use hlorank_graph::{FileKind, Measurements};
use hlorank_tests::prelude::*;

/// A file and its content.
pub(crate) struct MeasuredFile {
    pub(crate) path: PathBuf,
    pub(crate) kind: FileKind,
    pub(crate) graphs: Vec<MeasuredGraph>,
}

impl MeasuredFile {
    /// Reads the first file of layouts, by name.
    pub(crate) fn layout() -> Self {
        Self::first("layout_")
    }

    /// Reads the first file of tiles, by name.
    pub(crate) fn tile() -> Self {
        Self::first("tile_")
    }

    /// Reads one file of each task.
    pub(crate) fn both() -> [Self; 2] {
        [Self::layout(), Self::tile()]
    }

    fn first(start: &str) -> Self {
        let files = fs::read_dir(fixture("measured"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let is_wanted = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.starts_with(start) && name.ends_with(".pb")
        };
        let path = files.filter(is_wanted).min().unwrap();
        let file = GraphFile::read(&path, Task::Layout, &Limits::default()).unwrap();
        assert!(
            file.graphs.iter().all(|graph| graph.measurements.is_some()),
            "{}",
            path.display()
        );
        Self {
            path,
            kind: file.kind,
            graphs: file.graphs,
        }
    }

    /// Returns the path as an argument.
    pub(crate) fn argument(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// Returns the measurements of a graph.
pub(crate) fn measurements(graph: &MeasuredGraph) -> &Measurements {
    graph.measurements.as_ref().unwrap()
}

/// Returns the measured run times of a graph with the numbers of their configurations.
pub(crate) fn run_times(graph: &MeasuredGraph) -> Vec<(usize, i64)> {
    let times = measurements(graph).run_times.iter().copied().enumerate();
    times.filter(|(_, time)| *time > 0).collect()
}
