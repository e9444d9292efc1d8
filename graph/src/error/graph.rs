use std::fmt;

use super::{ModuleFault, TextError};
use crate::{
    InstanceFeatureError, LimitKind, Limits, NamedSetError, Task, shortened, wire::WireError,
};

/// The error of a graph that is refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GraphError {
    /// The `Graph` of a request is not protobuf, or another message.
    #[error("the graph is not a readable message: {detail}")]
    Encoding {
        /// Message of the decoder.
        detail: String,
    },
    /// Bytes that are not protobuf, hold another message, or are cut off.
    #[error(
        "{place} is not a readable protobuf: {detail}; send a serialized HloModuleProto or HloProto"
    )]
    Malformed {
        /// The part of the module, such as `node 7 (in computation 2)`.
        place: String,
        /// Message of the decoder.
        detail: String,
    },
    /// A field of a request with content of another format.
    #[error("{field}: {found}")]
    OtherFormat {
        /// The field of the graph.
        field: &'static str,
        /// What it contains.
        found: UnreadContent,
    },
    /// HLO text that is not valid.
    #[error("HLO text, line {line}, column {column}: {source}")]
    Text {
        /// Line, from 1.
        line: usize,
        /// Character in the line, from 1.
        column: usize,
        /// The error at that position.
        source: TextError,
    },
    /// An instruction that decodes to far more memory than its bytes.
    #[error(
        "{place} holds {found} bytes of shapes, windows, slices and lists; at most {limit} are allowed"
    )]
    InstructionTooLarge {
        /// The instruction.
        place: String,
        /// Number of bytes.
        found: usize,
        /// Maximum number of bytes.
        limit: usize,
    },
    /// A module that is not prepared for the choice of fusions.
    #[error(transparent)]
    Fusion(#[from] FusionError),
    /// A program before fusion that was sent as features.
    #[error(
        "the kernels of a program do not follow from its features; send the HLO module before fusion as hlo_module or \
         hlo_text"
    )]
    ProgramWithoutModule,
    /// A graph whose form is not that of its task.
    #[error(
        "graphs for {task} are not sent in this form; feature_graph is for feature-set alone, and feature-set takes no other \
         form"
    )]
    WrongSource {
        /// The task.
        task: Task,
    },
    /// A name that no feature set has.
    #[error(
        "the name of the feature set is not 1 to 128 printable ASCII characters without `\"` and `\\`; send the name in \
         the manifest of the model"
    )]
    FeatureSetName,
    /// Names of node columns that are not as many as there are columns.
    #[error("node_columns has {found} names, but node_features has {expected} columns")]
    ColumnNames {
        /// Number of names.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// A description of the feature set that is none.
    #[error("the description of the feature set is wrong: {0}")]
    SetDescription(NamedSetError),
    /// A description of another set than that of the model.
    #[error(
        "the columns of the feature set differ from those of model `{model}`, which has {columns}"
    )]
    SetDiffers {
        /// The model.
        model: String,
        /// Its columns.
        columns: String,
    },
    /// A long name of an instance.
    #[error("instance is {found} bytes long, expected at most {limit} bytes; send a digest of it")]
    InstanceTooLong {
        /// Number of bytes.
        found: usize,
        /// Maximum number.
        limit: usize,
    },
    /// Features of an instance that are none.
    #[error("instance_features: {0}")]
    InstanceFeatures(InstanceFeatureError),
    /// Features that are not as many for every node.
    #[error(
        "node_features has {found} values for {nodes} nodes; every node has the same number of columns, at least 1"
    )]
    NodeFeatures {
        /// Number of values.
        found: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// Node features of another width than the model takes.
    #[error(
        "node_features has {found} columns, but the feature set `{set}` of model `{model}` has {expected} node columns"
    )]
    WrongColumns {
        /// Columns of the graph.
        found: usize,
        /// The feature set.
        set: String,
        /// The model.
        model: String,
        /// Columns of the feature set.
        expected: usize,
    },
    /// A file of measured fusions whose slots are not those of its program.
    #[error(
        "config_index_to_node lists {found} slots, which are not the {expected} slots of the program; collect the \
         measurements again"
    )]
    OtherSlots {
        /// Slots that the file lists.
        found: usize,
        /// Slots of the program.
        expected: usize,
    },
    /// A module without instructions.
    #[error("the module has no instructions; send a module with at least one instruction")]
    Empty,
    /// A module that XLA would refuse.
    #[error(
        "{place}: {fault}; XLA refuses such a module: dump it again, or mend the program that wrote it"
    )]
    InvalidModule {
        /// The part of the module, such as ``node 7 (`dot.3`, dot) of computation `main` ``.
        place: String,
        /// The rule that it breaks.
        fault: Box<ModuleFault>,
    },
    /// Two instructions with the same id.
    #[error(
        "node {second} (`{name}`) has the id {id} of node {first}; ids must be unique in a module"
    )]
    DuplicateInstruction {
        /// The id.
        id: i64,
        /// First node with the id.
        first: u32,
        /// Second node with the id.
        second: u32,
        /// Name of the second node.
        name: String,
    },
    /// Two computations with the same id.
    #[error(
        "computation `{name}` has the id {id} of an earlier computation; ids must be unique in a module"
    )]
    DuplicateComputation {
        /// The id.
        id: i64,
        /// Name of the second computation.
        name: String,
    },
    /// An operand id that belongs to no instruction of the computation.
    #[error(
        "node {node} has operand id {id}, which no instruction of its computation has; values of other computations are \
         parameters"
    )]
    UnknownOperand {
        /// The consumer.
        node: u32,
        /// The missing id.
        id: i64,
    },
    /// A called computation that is missing or has no root instruction.
    #[error(
        "node {node} calls computation id {id}, which is not in the module or has no root instruction"
    )]
    UnknownCallee {
        /// The caller.
        node: u32,
        /// The missing id.
        id: i64,
    },
    /// An edge to a node that is not in the graph.
    #[error("edge {edge} joins node {node}, but the graph has {nodes} nodes (0 to {})", nodes.saturating_sub(1))]
    UnknownEdgeNode {
        /// Position of the edge.
        edge: usize,
        /// The missing node.
        node: u32,
        /// Number of nodes of the graph.
        nodes: usize,
    },
    /// A node that depends on itself, directly or through other nodes.
    #[error("node {node} depends on itself; operands and callees must form no cycle")]
    Cycle {
        /// A node on the cycle.
        node: u32,
    },
    /// The module exceeds a limit.
    #[error("the module has more than {limit} {what}; split it into smaller modules")]
    TooMany {
        /// The counted items: `nodes`, `edges` or `computations`.
        what: &'static str,
        /// The limit that is exceeded.
        kind: LimitKind,
        /// The value of the limit.
        limit: usize,
    },
    /// A configurable node that is not in the graph.
    #[error("configurable node {node} is not in the graph, which has {nodes} nodes")]
    UnknownConfigurableNode {
        /// The node.
        node: u64,
        /// Number of nodes of the graph.
        nodes: usize,
    },
    /// A node listed twice.
    #[error("configurable node {node} is listed twice")]
    DuplicateConfigurableNode {
        /// The node.
        node: u32,
    },
    /// A kernel with configurable nodes.
    #[error(
        "a kernel has no configurable nodes, but {count} are listed; send it as a layout graph or leave them out"
    )]
    ConfigurableKernel {
        /// Number of configurable nodes.
        count: usize,
    },
    /// An array of the wrong length.
    #[error("{array} has {found} values, expected {expected}")]
    ArrayLength {
        /// The array.
        array: &'static str,
        /// Number of values.
        found: usize,
        /// Expected number of values.
        expected: usize,
    },
    /// Lists of operands that do not fit the graph.
    #[error(
        "value {place} of operands does not fit the nodes and edges; send operands as `hlorank graph features` writes them, or \
         leave them out"
    )]
    Operands {
        /// Position in the array.
        place: usize,
    },
    /// A feature that is not a finite number.
    #[error("feature {column} of node {node} is not a finite number")]
    FeatureNotFinite {
        /// The node.
        node: usize,
        /// The column, from 0.
        column: usize,
    },
    /// A feature that is larger than any number of an HLO module.
    #[error("feature {column} of node {node} is beyond 2^63, as no number of an HLO module is")]
    FeatureTooLarge {
        /// The node.
        node: usize,
        /// The column, 0 to 139.
        column: usize,
    },
    /// A tensor of more elements than XLA counts.
    #[error(
        "the dimensions of node {node} make more than 2^63 elements, which is more than XLA allows"
    )]
    TensorTooLarge {
        /// The node.
        node: usize,
    },
    /// An edge out of a node that consumes nothing.
    #[error(
        "edge {edge} says that node {node}, {opcode}, consumes node {producer}, but {opcode} has no operands; edges are \
         [m, 2] pairs of consumer and producer"
    )]
    ReversedEdge {
        /// Position of the edge, in the order of consumers.
        edge: usize,
        /// The consumer.
        node: u32,
        /// The producer.
        producer: u32,
        /// Opcode of the consumer.
        opcode: &'static str,
    },
    /// A feature that no instruction has.
    #[error(
        "feature {column} of node {node} is {found}, but {what} is {expected}; compute the features again"
    )]
    FeatureImpossible {
        /// The node.
        node: usize,
        /// The column, 0 to 139.
        column: usize,
        /// The value, as it is written.
        found: String,
        /// What the column holds.
        what: &'static str,
        /// Its valid values.
        expected: &'static str,
    },
    /// A pad value that is neither 0 nor −1.
    #[error("the pad value is {found}; use 0 (the official data) or -1 (TGraph's)")]
    PadValue {
        /// The value.
        found: i32,
    },
}

impl GraphError {
    pub(crate) fn too_many_nodes(limits: &Limits) -> Self {
        Self::TooMany {
            what: "nodes",
            kind: LimitKind::Nodes,
            limit: limits.nodes,
        }
    }

    /// Every computation has at least one instruction, so the limit on nodes bounds computations too.
    pub(crate) fn too_many_computations(limits: &Limits) -> Self {
        Self::TooMany {
            what: "computations",
            kind: LimitKind::Nodes,
            limit: limits.nodes,
        }
    }

    pub(crate) fn too_many_edges(limits: &Limits) -> Self {
        Self::TooMany {
            what: "edges",
            kind: LimitKind::Edges,
            limit: limits.edges,
        }
    }
}

impl From<WireError> for GraphError {
    fn from(error: WireError) -> Self {
        Self::Encoding {
            detail: error.to_string(),
        }
    }
}

/// The error of a module that is not prepared for the choice of fusions.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum FusionError {
    /// No computation has the id of the entry computation.
    #[error(
        "the module has no entry computation; set entry_computation_id to the id of one, or mark it ENTRY"
    )]
    NoEntry,
    /// A compiled module.
    #[error(
        "the module has a schedule, so it was compiled; send the module before fusion, without a schedule"
    )]
    Scheduled,
    /// An instruction that only a module after fusion has.
    #[error(
        "node {node} (`{name}`) is a {opcode}; send the module before fusion, with the instructions of every fusion \
         in the entry computation and every bitcast as reshape and transpose"
    )]
    NotPrepared {
        /// The node.
        node: u32,
        /// Name of the instruction.
        name: String,
        /// `fusion` or `bitcast`.
        opcode: String,
    },
    /// An array in another order than row-major.
    #[error(
        "node {node} (`{name}`) has the layout {{{minor_to_major}}}; make every array row-major, and express other \
         orders as transpose"
    )]
    Layout {
        /// The node.
        node: u32,
        /// Name of the instruction.
        name: String,
        /// Dimensions from most minor to most major, separated by commas.
        minor_to_major: String,
    },
    /// An operand that does not stand before its user in the entry computation.
    #[error(
        "operand {operand} of node {node} is not an earlier instruction of the entry computation; sort the \
         instructions so that operands stand before their users"
    )]
    OperandOrder {
        /// The user.
        node: u32,
        /// The operand.
        operand: u32,
    },
}

impl FusionError {
    pub(crate) fn layout(node: u32, name: &str, minor_to_major: &[i64]) -> Self {
        let dimensions: Vec<String> = minor_to_major
            .iter()
            .take(16)
            .map(ToString::to_string)
            .collect();
        Self::Layout {
            node,
            name: shortened(name),
            minor_to_major: dimensions.join(","),
        }
    }
}

/// What a file or a field contains, if it is not read, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadContent {
    /// Name of the content, such as `a PDF document`.
    pub name: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for UnreadContent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "this is {}; {}", self.name, self.advice)
    }
}
