/// The error of HLO text that is refused. [`GraphError::Text`](super::GraphError::Text) adds the position.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TextError {
    /// Another token than the expected one.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The expected token.
        expected: String,
        /// The token in the text.
        found: String,
    },
    /// A bracket or a string that is never closed.
    #[error("`{opening}` is never closed")]
    Unclosed {
        /// The opening character.
        opening: char,
    },
    /// A comment that is never closed.
    #[error("the comment is never closed")]
    UnclosedComment,
    /// A byte 0.
    #[error("the text contains a byte 0")]
    Nul,
    /// A layout that is not a permutation of the dimensions.
    #[error("the layout must list each of the {rank} dimensions of the shape once")]
    Layout {
        /// Number of dimensions.
        rank: usize,
    },
    /// A token that is not a whole number of 64 bits.
    #[error("`{text}` is not a whole number of 64 bits")]
    Number {
        /// The token.
        text: String,
    },
    /// A list that is longer than that of any instruction.
    #[error("the list has more than {limit} items")]
    ListTooLong {
        /// Maximum number of items.
        limit: usize,
    },
    /// Computations, instructions or tuples that are nested too deep.
    #[error(
        "computations, operands or tuples are nested more than {limit} deep; print them by name"
    )]
    TooDeep {
        /// Maximum depth.
        limit: usize,
    },
    /// An operand that names no earlier instruction.
    #[error("`{name}` is not an instruction above this one in its computation")]
    UnknownOperand {
        /// The name.
        name: String,
    },
    /// An element that a tuple does not have, or of an instruction that is no tuple.
    #[error("there is no element {index}: the operand has {elements} elements")]
    NoElement {
        /// The index.
        index: i64,
        /// Number of elements; 0 for an array.
        elements: usize,
    },
    /// A shape that is left out and does not follow from the operands.
    #[error("the shape of `{opcode}` is left out and does not follow from its operands; print it")]
    NoShape {
        /// The opcode.
        opcode: String,
    },
    /// A called computation that is not defined.
    #[error("`{name}` is not a computation of the module")]
    UnknownComputation {
        /// The name.
        name: String,
    },
    /// Two instructions of a computation with the same name.
    #[error("instruction `{name}` is in this computation already; names must be unique")]
    DuplicateInstruction {
        /// The name.
        name: String,
    },
    /// A computation with two roots.
    #[error(
        "instruction `{name}` is the second ROOT of its computation; a computation has one root"
    )]
    SecondRoot {
        /// The name.
        name: String,
    },
    /// A module with two entry computations.
    #[error(
        "computation `{name}` is the second ENTRY of its module; a module has one entry computation"
    )]
    SecondEntry {
        /// The name.
        name: String,
    },
    /// Two computations with the same name.
    #[error("computation `{name}` is in the module already; names must be unique")]
    DuplicateComputation {
        /// The name.
        name: String,
    },
    /// An instruction that XLA would refuse.
    #[error(
        "instruction `{name}` ({opcode}): {fault}; XLA refuses such a module: dump it again, or mend the program that wrote \
         it"
    )]
    InvalidInstruction {
        /// Name of the instruction.
        name: String,
        /// Its opcode.
        opcode: String,
        /// The rule that it breaks.
        fault: Box<ModuleFault>,
    },
    /// Bytes that are not UTF-8.
    #[error("the bytes are not UTF-8")]
    NotUtf8,
}

/// A rule of XLA's verifier that an instruction or a computation breaks.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ModuleFault {
    /// An instruction without a shape.
    #[error("it has no shape")]
    NoShape,
    /// An element type that no version of XLA has.
    #[error("its element type is {found}, which is none of xla.PrimitiveType")]
    ElementType {
        /// The number of the type.
        found: i32,
    },
    /// A dimension of negative size.
    #[error("dimension {dimension} of its shape has size {size}; a size is at least 0")]
    NegativeSize {
        /// The dimension.
        dimension: usize,
        /// Its size.
        size: i64,
    },
    /// A layout that is not a permutation of the dimensions.
    #[error("its layout {found:?} must list each of the {rank} dimensions of its shape once")]
    Layout {
        /// The start of the layout, from the most minor dimension.
        found: Vec<i64>,
        /// Number of dimensions.
        rank: usize,
    },
    /// A tuple with dimensions, or an array with elements.
    #[error(
        "its shape is both an array with dimensions and a tuple with elements; it can be only one"
    )]
    ArrayAndTuple,
    /// Too few operands.
    #[error("it has {found} operands, but takes at least {least}")]
    Operands {
        /// The minimum.
        least: usize,
        /// The number.
        found: usize,
    },
    /// A root that is not an instruction of the computation.
    #[error("its root has id {id}, which none of its instructions has")]
    NoRoot {
        /// The id.
        id: i64,
    },
    /// A computation without instructions.
    #[error("it has no instructions; a computation has at least its root")]
    NoInstructions,
    /// Parameters that are not numbered from 0.
    #[error(
        "its {count} parameters have no number {missing}; they are numbered from 0, each number once"
    )]
    Parameters {
        /// Number of parameters.
        count: usize,
        /// The first number that is missing.
        missing: usize,
    },
    /// An entry computation that is not in the module.
    #[error("its entry computation has id {id}, which no computation has")]
    NoEntry {
        /// The id.
        id: i64,
    },
}
