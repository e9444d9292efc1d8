use crate::Task;

/// Why a graph was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GraphError {
    /// Not protobuf, or not of the expected message, or cut short.
    #[error("{place} is not a readable protobuf: {detail}; send a serialized HloModuleProto or HloProto")]
    Malformed {
        /// Which part, such as `instruction 7 of computation 2`.
        place: String,
        /// What the decoder said.
        detail: String,
    },
    /// A message that would unfold to far more memory than its bytes.
    #[error("{place} holds {found} bytes of shapes, windows, slices and lists; at most {limit} are read")]
    InstructionTooLarge {
        /// Which instruction.
        place: String,
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Nothing to featurize.
    #[error("the module has no instructions; send a module with at least one computation that has some")]
    Empty,
    /// Two instructions with one id.
    #[error("node {second} (`{name}`) has the id {id} of node {first}; ids must be unique in a module")]
    DuplicateInstruction {
        /// The id.
        id: i64,
        /// Node that had it first.
        first: u32,
        /// Node that has it again.
        second: u32,
        /// Name of that node.
        name: String,
    },
    /// Two computations with one id.
    #[error("computation `{name}` has the id {id} of an earlier one; ids must be unique in a module")]
    DuplicateComputation {
        /// The id.
        id: i64,
        /// Name of the second computation.
        name: String,
    },
    /// An operand id that no instruction has.
    #[error("node {node} has operand id {id}, which no instruction of the module has")]
    UnknownOperand {
        /// The consumer.
        node: u32,
        /// The id it names.
        id: i64,
    },
    /// A called computation that is missing, or whose root is.
    #[error("node {node} calls computation id {id}, which is not in the module or has no root instruction")]
    UnknownCallee {
        /// The caller.
        node: u32,
        /// The id it names.
        id: i64,
    },
    /// An edge that leaves the graph.
    #[error("edge {edge} joins node {node}, but the graph has {nodes} nodes (0 to {})", nodes.saturating_sub(1))]
    UnknownEdgeNode {
        /// Position of the edge.
        edge: usize,
        /// The node it names.
        node: u32,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// A node that consumes itself, directly or through others.
    #[error("node {node} depends on itself; operands and callees must form no cycle")]
    Cycle {
        /// A node on the cycle.
        node: u32,
    },
    /// Over a limit.
    #[error("the module has more than {limit} {what}; split it, or raise {setting} on the server")]
    TooMany {
        /// What was counted.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
        /// The server's setting.
        setting: &'static str,
    },
    /// A configurable node that is not there.
    #[error("configurable node {node} is not in the graph, which has {nodes} nodes")]
    UnknownConfigurableNode {
        /// The node.
        node: u64,
        /// Nodes of the graph.
        nodes: usize,
    },
    /// A node listed twice.
    #[error("configurable node {node} is listed twice")]
    DuplicateConfigurableNode {
        /// The node.
        node: u32,
    },
    /// Configurable nodes given for a kernel.
    #[error(
        "a kernel has no configurable nodes, but {count} are listed; send it as a layout graph or leave them out"
    )]
    ConfigurableKernel {
        /// How many.
        count: usize,
    },
    /// An array of the wrong length.
    #[error("{array} has {found} values, expected {expected}")]
    ArrayLength {
        /// Which array.
        array: &'static str,
        /// Values found.
        found: usize,
        /// Values expected.
        expected: usize,
    },
    /// A feature that is not a finite number.
    #[error("feature {column} of node {node} is not a finite number")]
    FeatureNotFinite {
        /// The node.
        node: usize,
        /// The column, 0 to 139.
        column: usize,
    },
    /// A pad value that is neither of the two.
    #[error("the pad value is {found}; use 0 (the official data) or -1 (TGraph's)")]
    PadValue {
        /// What was given.
        found: i32,
    },
}

/// Why a batch of configurations was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigurationError {
    /// No candidates.
    #[error("the batch has no configurations; send at least one")]
    Empty,
    /// Too many candidates.
    #[error(
        "the batch has {found} configurations, at most {limit} are taken; send several batches, or raise --max-configs on the server"
    )]
    TooMany {
        /// How many were sent.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Candidates times configurable nodes over the limit.
    #[error(
        "the batch has {configs} configurations of {slots} nodes each, at most {limit} entries are taken; send several batches, or raise --max-config-entries on the server"
    )]
    TooManyEntries {
        /// Candidates.
        configs: usize,
        /// Configurable nodes.
        slots: usize,
        /// Entries allowed.
        limit: usize,
    },
    /// Tiles for a layout graph, or layouts for a kernel.
    #[error("the batch holds {batch} configurations, but the graph is for {graph}")]
    WrongTask {
        /// Of the batch.
        batch: Task,
        /// Of the graph.
        graph: Task,
    },
    /// A layout graph where there is nothing to choose.
    #[error(
        "the graph has no configurable nodes, so there is nothing to rank; it needs a convolution, dot or reshape, or configurable_nodes"
    )]
    NothingToConfigure,
    /// A node that is not configurable.
    #[error(
        "configuration {config} sets node {node}, which is not configurable; PutGraph lists the nodes that are"
    )]
    NotConfigurable {
        /// The candidate.
        config: usize,
        /// The node it names.
        node: u32,
    },
    /// A slot past the last.
    #[error(
        "configuration {config} changes slot {slot}, which is not configurable: the graph has {slots} slots"
    )]
    NoSuchSlot {
        /// The candidate.
        config: usize,
        /// The slot it names.
        slot: u32,
        /// Configurable nodes of the graph.
        slots: usize,
    },
    /// A node or slot set twice.
    #[error("configuration {config} sets {what} {number} twice")]
    SetTwice {
        /// The candidate.
        config: usize,
        /// `node` or `slot`.
        what: &'static str,
        /// Which.
        number: u32,
    },
    /// An array whose length does not fit.
    #[error("{what} has {found} entries, expected {expected}")]
    WrongCount {
        /// Which array, and of which candidate or node.
        what: String,
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
    },
    /// Tile features that no list of at most six bounds has.
    #[error("configuration {config}: its features are not those of lists of at most six bounds")]
    NotBounds {
        /// The candidate.
        config: usize,
    },
    /// More tensors or dimensions than a configuration has room for.
    #[error("{what} has {found} entries, at most {limit} are allowed")]
    TooLong {
        /// Which list.
        what: String,
        /// Entries found.
        found: usize,
        /// Entries allowed.
        limit: usize,
    },
    /// A value outside its range.
    #[error("{what} is {found}, outside {range}")]
    OutOfRange {
        /// Which value.
        what: String,
        /// What was sent.
        found: i64,
        /// What is allowed.
        range: &'static str,
    },
    /// An index past the end of its table.
    #[error("configuration {config} uses entry {index} of slot {slot}, whose table has {entries} entries")]
    IndexOutsideTable {
        /// The candidate.
        config: usize,
        /// The slot.
        slot: usize,
        /// The index.
        index: u32,
        /// Entries in the table.
        entries: usize,
    },
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// None of the formats.
    #[error("{path}: not a HloModuleProto, HloProto, ModuleTuningData, TuningData, or TpuGraphs npz file")]
    UnknownFormat {
        /// The file.
        path: String,
    },
    /// An array is missing or of the wrong shape or type.
    #[error("{path}: array `{array}`: {detail}")]
    Array {
        /// The file.
        path: String,
        /// The array.
        array: String,
        /// What is wrong.
        detail: String,
    },
    /// A graph that was refused.
    #[error("{path}: module {module}: {source}")]
    Graph {
        /// The file.
        path: String,
        /// Which module of it, from 0.
        module: usize,
        /// Why.
        source: GraphError,
    },
    /// Configurations that were refused.
    #[error("{path}: module {module}: {source}")]
    Configuration {
        /// The file.
        path: String,
        /// Which module of it, from 0.
        module: usize,
        /// Why.
        source: ConfigurationError,
    },
    /// A module number past the end.
    #[error("{path}: module {module} was asked for, the file has {modules} (0 to {})", modules.saturating_sub(1))]
    NoSuchModule {
        /// The file.
        path: String,
        /// What was asked for.
        module: usize,
        /// How many there are.
        modules: usize,
    },
}
