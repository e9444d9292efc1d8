use crate::{Configurations, Graph, NodeDescription};

/// A graph of a file, with its measurements.
#[derive(Debug)]
pub struct MeasuredGraph {
    /// Name of the module, or of the file.
    pub name: String,
    /// The form of the graph that a client sends.
    pub source: GraphSource,
    /// The graph.
    pub graph: Graph,
    /// `TpuGraphs`' `node_splits`.
    pub node_splits: Vec<usize>,
    /// The configurable nodes in slot order; empty if the file has only features.
    pub nodes: Vec<NodeDescription>,
    /// Configurations and their run times, if the file has any.
    pub measurements: Option<Measurements>,
}

/// The form of a graph that a client sends.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphSource {
    /// A serialized `HloModuleProto`.
    HloModule(Vec<u8>),
    /// HLO text.
    HloText(String),
    /// The arrays of the graph.
    Features,
}

/// Configurations and their measured run times.
#[derive(Debug)]
pub struct Measurements {
    /// The configurations.
    pub configurations: Configurations,
    /// `[configs]` run times in nanoseconds; all 0 in `TpuGraphs`' test files.
    pub run_times: Vec<i64>,
    /// `[configs]` run times of the default of the kernel, to divide by.
    pub normalizers: Option<Vec<i64>>,
    /// Number of the default configuration of the compiler, if known.
    pub default: Option<usize>,
    /// `[configs]` numbers of the runs in the file, from 0. Skipped runs are counted.
    pub numbers: Vec<usize>,
    /// Number of runs that are skipped because they failed or do not fit the graph.
    pub skipped: usize,
}
