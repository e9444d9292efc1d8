use crate::shortened;

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
