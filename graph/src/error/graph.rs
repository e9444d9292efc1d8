use super::TextError;
use crate::LimitKind;

/// Why a graph was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum GraphError {
    /// Not protobuf, or not of the expected message, or cut short.
    #[error("{place} is not a readable protobuf: {detail}; send a serialized HloModuleProto or HloProto")]
    Malformed {
        /// Which part, such as `node 7 (in computation 2)`.
        place: String,
        /// What the decoder said.
        detail: String,
    },
    /// HLO text that does not read.
    #[error("HLO text, line {line}, column {column}: {source}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// The character of the line, from 1.
        column: usize,
        /// What is wrong there.
        source: TextError,
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
