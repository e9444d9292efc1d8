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
    #[error("its layout {found} must list each of the {rank} dimensions of its shape once")]
    Layout {
        /// The layout, from the most minor dimension.
        found: String,
        /// Number of dimensions.
        rank: usize,
    },
    /// A tuple with dimensions, or an array with elements.
    #[error(
        "its shape is both an array with dimensions and a tuple with elements; it can be only one"
    )]
    ArrayAndTuple,
    /// The wrong number of operands.
    #[error("it has {found} operands, but takes {expected}")]
    Operands {
        /// The valid numbers.
        expected: String,
        /// The number.
        found: usize,
    },
    /// An operand that is in another computation.
    #[error(
        "its operand {operand} is an instruction of another computation; pass it as a parameter"
    )]
    OtherComputation {
        /// Position of the operand.
        operand: usize,
    },
    /// A tuple or token in place of an array.
    #[error("{what} is no array, but must be one")]
    NotArray {
        /// The tensor, such as `operand 0`.
        what: String,
    },
    /// A result of another shape than follows from the operands.
    #[error("its shape is {found}, but {expected} follows from its operands and attributes")]
    Shape {
        /// Dimensions that follow.
        expected: String,
        /// Dimensions that it has.
        found: String,
    },
    /// Element types that must be equal.
    #[error(
        "{what} have the element types {left} and {right} of xla.PrimitiveType, which must be equal"
    )]
    ElementTypes {
        /// The tensors.
        what: &'static str,
        /// One type.
        left: i32,
        /// The other type.
        right: i32,
    },
    /// Two sizes that must be equal.
    #[error("{what} are {left} and {right}, which must be equal")]
    Sizes {
        /// The sizes.
        what: String,
        /// One size.
        left: i64,
        /// The other size.
        right: i64,
    },
    /// A dimension that the tensor does not have.
    #[error("{what} {found} does not exist, because the tensor has {rank} dimensions")]
    NoSuchDimension {
        /// The role of the dimension.
        what: &'static str,
        /// The dimension.
        found: i64,
        /// Number of dimensions.
        rank: usize,
    },
    /// A dimension that is listed twice.
    #[error("{what} {found} is listed twice")]
    Repeated {
        /// The role of the dimension.
        what: &'static str,
        /// The dimension.
        found: i64,
    },
    /// A list of the wrong length.
    #[error("it has {found} {what}, but needs {expected}")]
    Count {
        /// The items of the list.
        what: &'static str,
        /// The number of items.
        found: usize,
        /// The valid number.
        expected: usize,
    },
    /// A number out of its range.
    #[error("{what} is {found}, but must be {expected}")]
    Value {
        /// The number.
        what: String,
        /// Its value.
        found: i64,
        /// Its range.
        expected: String,
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
    /// The wrong number of arguments for a called computation.
    #[error(
        "it calls computation `{callee}` with {found} values, but that has {expected} parameters"
    )]
    Arguments {
        /// Name of the called computation.
        callee: String,
        /// Number of values.
        found: usize,
        /// Number of parameters.
        expected: usize,
    },
    /// A shape that differs from that inside a called computation.
    #[error(
        "{what} is {found}, but {inside} of computation `{callee}` is {expected}; they must be equal"
    )]
    CalledShape {
        /// The tensor outside.
        what: String,
        /// Its dimensions.
        found: String,
        /// The tensor inside.
        inside: String,
        /// Its dimensions.
        expected: String,
        /// Name of the called computation.
        callee: String,
    },
}
