use std::path::Path;

use super::array::Arrays;
use crate::{
    ConfigurationError, Configurations, FEATURES, FileError, FileKind, Graph, GraphArrays, GraphError,
    GraphSource, LAYOUT_VALUES, LayoutBatchBuilder, LayoutEntry, Limits, MeasuredGraph, Measurements, Pad,
    TILE_FEATURES, Task, TileBatch,
};

/// One golden case of an artifact: a graph, configurations, and the scores that the model must return.
#[derive(Debug)]
pub struct GoldenCase {
    /// The graph.
    pub graph: Graph,
    /// Its configurations.
    pub configurations: Configurations,
    /// `[configs]` expected scores.
    pub scores: Vec<f32>,
}

/// Reads the bytes of `golden.npz` of an artifact. Each case `0/`, `1/` … holds the arrays of spec §7 and `score`. Errors
/// name the `path`.
pub fn read_golden_cases(path: &Path, bytes: Vec<u8>, limits: &Limits) -> Result<Vec<GoldenCase>, FileError> {
    let mut arrays = Arrays::of(path, bytes)?;
    let mut cases = Vec::new();
    while arrays.has(&format!("{}/node_feat", cases.len())) {
        let mut case = Section { arrays: &mut arrays, prefix: format!("{}/", cases.len()), limits };
        let task = if case.has("config_feat") { Task::Tile } else { Task::Layout };
        let graph = case.graph(task)?;
        let configurations = case.configurations(&graph)?;
        let scores = case.floats("score")?;
        if scores.len() != configurations.len() {
            let detail = format!("{} values for {} configurations", scores.len(), configurations.len());
            return Err(case.arrays.error(&case.name("score"), &detail));
        }
        cases.push(GoldenCase { graph, configurations, scores });
    }
    Ok(cases)
}

/// Reads a `TpuGraphs` npz file. `bare_task` is the task of a file without configurations.
pub(crate) fn read_npz(
    path: &Path,
    bytes: Vec<u8>,
    bare_task: Task,
    limits: &Limits,
) -> Result<(FileKind, MeasuredGraph), FileError> {
    let mut arrays = Arrays::of(path, bytes)?;
    let mut section = Section { arrays: &mut arrays, prefix: String::new(), limits };
    let (kind, task) = match () {
        () if section.has("node_config_feat") => (FileKind::LayoutNpz, Task::Layout),
        () if section.has("config_feat") => (FileKind::TileNpz, Task::Tile),
        () => (FileKind::FeatureNpz, bare_task),
    };
    let graph = section.graph(task)?;
    let node_splits = if section.has("node_splits") {
        section.small_integers("node_splits")?
    } else {
        vec![0, graph.len()]
    };
    let measurements = match kind {
        FileKind::FeatureNpz => None,
        _ => Some(section.measurements(&graph)?),
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let nodes = Vec::new();
    let source = GraphSource::Features;
    Ok((kind, MeasuredGraph { name, source, graph, node_splits, nodes, measurements }))
}

/// Converts layout values, which are stored as f32.
fn whole_numbers(
    values: [f32; LAYOUT_VALUES],
    what: impl Fn() -> String,
) -> Result<[i32; LAYOUT_VALUES], ConfigurationError> {
    #[expect(clippy::cast_possible_truncation, reason = "a value that differs is refused")]
    let numbers = values.map(|value| value as i32);
    #[expect(clippy::cast_precision_loss, reason = "a number that differs is refused")]
    let same = values.iter().zip(numbers).all(|(value, number)| number as f32 == *value);
    if same { Ok(numbers) } else { Err(ConfigurationError::NotWhole { what: what() }) }
}

/// The arrays of one graph, whose names have a common prefix.
struct Section<'a> {
    arrays: &'a mut Arrays,
    prefix: String,
    limits: &'a Limits,
}

impl Section<'_> {
    fn name(&self, array: &str) -> String {
        format!("{}{array}", self.prefix)
    }

    fn has(&self, array: &str) -> bool {
        self.arrays.has(&self.name(array))
    }

    fn integers(&mut self, array: &str) -> Result<Vec<i64>, FileError> {
        self.arrays.integers(&self.name(array))
    }

    fn floats(&mut self, array: &str) -> Result<Vec<f32>, FileError> {
        self.arrays.floats(&self.name(array))
    }

    /// Reads integers that must fit a smaller type: opcodes, node numbers.
    fn small_integers<T: TryFrom<i64>>(&mut self, array: &str) -> Result<Vec<T>, FileError> {
        let values = self.integers(array)?;
        let small = values.iter().map(|&value| T::try_from(value).map_err(|_| value));
        let small: Result<Vec<T>, i64> = small.collect();
        small.map_err(|value| self.arrays.error(&self.name(array), &format!("value {value} is out of range")))
    }

    fn graph(&mut self, task: Task) -> Result<Graph, FileError> {
        let opcodes: Vec<u8> = self.small_integers("node_opcode")?;
        self.arrays.check_shape(&self.name("node_feat"), &[Some(opcodes.len()), Some(FEATURES)])?;
        self.arrays.check_shape(&self.name("edge_index"), &[None, Some(2)])?;
        let features = self.floats("node_feat")?;
        let edges = self.small_integers::<u32>("edge_index")?;
        let (edges, _) = edges.as_chunks::<2>();
        let pad = Pad::of_features(&features);
        let arrays = GraphArrays::from_features(opcodes, features, edges.to_vec(), pad, self.limits);
        let arrays = arrays.map_err(|error| self.graph_error(error))?;
        let configurable = match task {
            Task::Tile => Vec::new(),
            Task::Layout if self.has("node_config_ids") => self.small_integers("node_config_ids")?,
            Task::Layout => arrays.default_configurable(),
        };
        Graph::new(task, arrays, configurable).map_err(|error| self.graph_error(error))
    }

    fn graph_error(&self, source: GraphError) -> FileError {
        FileError::Graph { path: self.arrays.path().to_owned(), module: 0, source }
    }

    fn configurations(&mut self, graph: &Graph) -> Result<Configurations, FileError> {
        match graph.task() {
            Task::Layout => self.layouts(graph.configurable().len()),
            Task::Tile => self.tiles(),
        }
    }

    fn layouts(&mut self, slots: usize) -> Result<Configurations, FileError> {
        let mut builder = LayoutBatchBuilder::new(slots, *self.limits);
        let row_length = |shape: &[usize]| match shape {
            [_, nodes, LAYOUT_VALUES] if *nodes == slots => Some(slots * LAYOUT_VALUES),
            _ => None,
        };
        let mut config = 0;
        let name = self.name("node_config_feat");
        self.arrays.float_rows(&name, row_length, |row| {
            let (entries, _) = row.as_chunks::<LAYOUT_VALUES>();
            let entry = |(slot, values): (usize, &[f32; LAYOUT_VALUES])| {
                let what = || format!("configuration {config}, slot {slot}");
                LayoutEntry::from_values(&whole_numbers(*values, what)?, what)
            };
            let entries: Vec<LayoutEntry> =
                entries.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
            config += 1;
            builder.push(&entries)
        })?;
        let path = self.arrays.path().to_owned();
        let batch = builder.build().map_err(|source| FileError::Configuration { path, module: 0, source })?;
        Ok(Configurations::Layout(batch))
    }

    fn tiles(&mut self) -> Result<Configurations, FileError> {
        let name = self.name("config_feat");
        let mut batch = TileBatch::default();
        let limits = self.limits;
        let row_length =
            |shape: &[usize]| (shape.len() == 2 && shape[1] == TILE_FEATURES).then_some(TILE_FEATURES);
        self.arrays.float_rows(&name, row_length, |row| batch.push_features(row, limits))?;
        Ok(Configurations::Tile(batch))
    }

    fn measurements(&mut self, graph: &Graph) -> Result<Measurements, FileError> {
        let configurations = self.configurations(graph)?;
        let run_times = self.integers("config_runtime")?;
        if run_times.len() != configurations.len() {
            let detail = format!("{} values for {} configurations", run_times.len(), configurations.len());
            return Err(self.arrays.error("config_runtime", &detail));
        }
        let configs = configurations.len();
        let normalizers = if self.has("config_runtime_normalizers") {
            self.arrays.check_shape(&self.name("config_runtime_normalizers"), &[Some(configs)])?;
            Some(self.integers("config_runtime_normalizers")?)
        } else {
            None
        };
        let numbers = (0..configurations.len()).collect();
        Ok(Measurements { configurations, run_times, normalizers, default: None, numbers, skipped: 0 })
    }
}
