use std::{
    io::{self, BufWriter, Write as _},
    path::Path,
};

use flate2::{Compression, write::DeflateEncoder};
use npyz::{AutoSerialize, WriteOptions, WriterBuilder, npz::file_name_from_array_name};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::section::{EXPORTED, FEATURE_SET, MODULE, OPERANDS};
use crate::{
    Configurations, FeatureGraph, FileError, Graph, GraphSource, LOOP_FEATURES, MeasuredGraph,
    OutputFile, Pad, Scope, SegmentedGraph, prune, recognize::most_unpacked,
};

/// A writer of the npz file that training reads: the arrays of spec §7 and those of the pruned graph and its
/// segments.
///
/// | array | type, shape | |
/// |---|---|---|
/// | `pruned_node_ids` | i64 `[k]` | nodes kept, ascending |
/// | `pruned_edge_index` | i64 `[e, 2]` | edges kept, as positions in `pruned_node_ids` |
/// | `pruned_segment` | i64 `[k]` | segment of each node kept |
/// | `config_loops` | f32 `[configurations, 198]` | columns of the loops of tiles, which exports lack |
///
/// The file of a graph of a feature set has the arrays of its measured files instead.
pub struct FeatureFile<'a> {
    path: &'a Path,
    writer: ZipWriter<OutputFile>,
    method: CompressionMethod,
}

impl<'a> FeatureFile<'a> {
    /// Writes a graph and its measurements to `path`, as an [`OutputFile`]. Fails if `pad` is −1 and the features of the graph
    /// were padded with 0.
    pub fn write(path: &'a Path, measured: &MeasuredGraph, pad: Pad) -> Result<(), FileError> {
        Self::write_file(path, |file| {
            file.arrays(measured, pad)?;
            file.loops(measured)
        })
    }

    /// Writes a graph and its measurements as [`Self::write`] does, padded with −1 if the lengths of sequences are known, and
    /// the bytes from which both can be read without loss; only the bytes if there is no graph.
    pub fn write_exported(
        path: &'a Path,
        measured: Option<&MeasuredGraph>,
        exported: &[u8],
    ) -> Result<(), FileError> {
        Self::write_file(path, |file| {
            if let Some(measured) = measured {
                let known = measured.graph.sequence_lengths().is_some();
                file.arrays(measured, if known { Pad::MinusOne } else { Pad::Zero })?;
            }
            // What is refused for its ratio when it is read stays as it is.
            if !stays_in_proportion(exported) {
                file.method = CompressionMethod::Stored;
            }
            file.array(EXPORTED, &[exported.len()], exported.iter().copied())
        })
    }

    fn write_file(
        path: &'a Path,
        write: impl FnOnce(&mut Self) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let io_error = |source| io_error(path, source);
        let writer = OutputFile::create(path).map_err(io_error)?;
        let mut file = FeatureFile {
            path,
            writer: ZipWriter::new(writer),
            method: CompressionMethod::Deflated,
        };
        write(&mut file)?;
        let output = file
            .writer
            .finish()
            .map_err(|error| io_error(error.into()))?;
        output.finish().map_err(io_error)
    }

    fn arrays(&mut self, measured: &MeasuredGraph, pad: Pad) -> Result<(), FileError> {
        if let Some(graph) = measured.graph.feature_graph() {
            self.feature_graph(graph)?;
        } else {
            self.graph(measured, pad)?;
            self.pruned(&measured.graph)?;
        }
        self.measurements(measured)
    }

    fn feature_graph(&mut self, graph: &FeatureGraph) -> Result<(), FileError> {
        self.array(FEATURE_SET, &[graph.set().len()], graph.set().bytes())?;
        let shape = [graph.nodes(), graph.columns()];
        self.array("node_features", &shape, graph.features().iter().copied())?;
        self.array(
            "edge_index",
            &[graph.edges().len(), 2],
            pairs(graph.edges()),
        )
    }

    fn graph(&mut self, measured: &MeasuredGraph, pad: Pad) -> Result<(), FileError> {
        let graph = &measured.graph;
        let features = graph.features(pad);
        let features = features.ok_or_else(|| FileError::Array {
            path: measured.name.clone(),
            array: "node_feat".to_owned(),
            detail: "its features are padded with 0 and cannot be padded with -1; read the HLO module instead"
                .to_owned(),
        })?;
        let nodes = graph.len();
        let edges = graph.edges();
        self.array("node_feat", &[nodes, graph.columns()], features)?;
        self.array("node_opcode", &[nodes], graph.opcodes().iter().copied())?;
        self.array("edge_index", &[edges.len(), 2], pairs(edges))?;
        if let Some(operands) = graph.operands() {
            let numbers = operands.numbers();
            self.array(
                OPERANDS,
                &[numbers.len()],
                numbers.iter().copied().map(i64::from),
            )?;
        }
        // Features alone do not say which nodes of a program fit into one kernel.
        if let (Some(_), GraphSource::HloModule(module)) = (graph.program(), &measured.source) {
            self.array(MODULE, &[module.len()], module.iter().copied())?;
        }
        if graph.task().kind().scope == Scope::Nodes {
            let ids = graph.configurable().iter().copied().map(i64::from);
            self.array("node_config_ids", &[ids.len()], ids)?;
            let splits = measured.node_splits.iter().map(|&split| as_i64(split));
            self.array("node_splits", &[1, splits.len()], splits)?;
        }
        Ok(())
    }

    fn pruned(&mut self, graph: &Graph) -> Result<(), FileError> {
        let pruned = prune(graph);
        // Nodes that pruning drops are in no segment.
        let mut segments = vec![0; graph.len()];
        for (segment, occurrence) in SegmentedGraph::new(graph).occurrences.iter().enumerate() {
            for &node in &occurrence.nodes {
                segments[node as usize] = as_i64(segment);
            }
        }
        let kept = &pruned.nodes;
        let ids = kept.iter().copied().map(i64::from);
        self.array("pruned_node_ids", &[kept.len()], ids)?;
        let edges = &pruned.edges;
        self.array("pruned_edge_index", &[edges.len(), 2], pairs(edges))?;
        let segments = kept.iter().map(|&node| segments[node as usize]);
        self.array("pruned_segment", &[kept.len()], segments)
    }

    fn measurements(&mut self, measured: &MeasuredGraph) -> Result<(), FileError> {
        let Some(measurements) = &measured.measurements else {
            return Ok(());
        };
        let configs = measurements.configurations.len();
        self.configurations(&measured.graph, &measurements.configurations)?;
        let run_times = measurements.run_times.iter().copied();
        self.array("config_runtime", &[configs], run_times)?;
        if let Some(normalizers) = &measurements.normalizers {
            let normalizers = normalizers.iter().copied();
            self.array("config_runtime_normalizers", &[configs], normalizers)?;
        }
        Ok(())
    }

    fn configurations(
        &mut self,
        graph: &Graph,
        configurations: &Configurations,
    ) -> Result<(), FileError> {
        let configs = configurations.len();
        let batch = configurations.batch();
        let kind = graph.task().kind();
        let slots = graph.configurable().len();
        let row = batch.feature_row(0).len();
        let shape = match kind.scope {
            Scope::Kernel | Scope::Program => vec![configs, row],
            Scope::Nodes => vec![configs, slots, kind.width],
            Scope::EveryNode => vec![configs, slots, row / slots],
        };
        let rows = (0..configs).flat_map(|config| batch.feature_row(config));
        self.array(kind.array, &shape, rows)
    }

    /// Writes the columns of tiles that follow from the loops of their kernel. Readers compute them again.
    fn loops(&mut self, measured: &MeasuredGraph) -> Result<(), FileError> {
        let (Some(loops), Some(measurements)) = (measured.graph.loops(), &measured.measurements)
        else {
            return Ok(());
        };
        let batch = measurements.configurations.batch();
        let configs = batch.len();
        let columns = (0..configs).flat_map(|config| {
            let mut columns = Vec::with_capacity(LOOP_FEATURES);
            loops.write(&batch.feature_row(config), &mut columns);
            columns
        });
        self.array("config_loops", &[configs, LOOP_FEATURES], columns)
    }

    fn array<T: AutoSerialize>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), FileError> {
        let write = || {
            let options = SimpleFileOptions::default().compression_method(self.method);
            self.writer
                .start_file(file_name_from_array_name(name), options)?;
            let shape: Vec<u64> = shape.iter().map(|&size| size as u64).collect();
            let options = WriteOptions::new().default_dtype().shape(&shape);
            let mut writer = BufWriter::new(&mut self.writer);
            let mut array = options.writer(&mut writer).begin_nd()?;
            array.extend(values)?;
            array.finish()?;
            writer.flush()
        };
        write().map_err(|source| io_error(self.path, source))
    }
}

/// Returns whether bytes are far from being refused for what they take compressed.
fn stays_in_proportion(bytes: &[u8]) -> bool {
    let mut compressed = DeflateEncoder::new(io::sink(), Compression::default());
    // A sink takes everything.
    let _ = compressed
        .write_all(bytes)
        .and_then(|()| compressed.try_finish());
    bytes.len() as u64 <= most_unpacked(compressed.total_out() / 2)
}

fn io_error(path: &Path, source: io::Error) -> FileError {
    FileError::Io {
        path: path.display().to_string(),
        source,
    }
}

fn pairs(edges: &[[u32; 2]]) -> impl Iterator<Item = i64> {
    edges.as_flattened().iter().copied().map(i64::from)
}

/// Positions in a graph fit `i64`.
fn as_i64(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::read_exported;

    #[test]
    fn an_export_of_equal_bytes_is_read_again_and_a_small_file_that_becomes_a_large_one_is_refused()
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.npz");
        let read = || read_exported(&path, fs::read(&path).unwrap());
        let equal = vec![7; 8 << 20];
        FeatureFile::write_exported(&path, None, &equal).unwrap();
        assert_eq!(read().unwrap(), Some(equal.clone()));
        FeatureFile::write_file(&path, |file| {
            file.array(EXPORTED, &[equal.len()], equal.iter().copied())
        })
        .unwrap();
        let refused = read().unwrap_err().to_string();
        assert!(
            refused.contains("8388608 bytes")
                && refused.contains("write the file without compression"),
            "{refused}"
        );
    }
}
