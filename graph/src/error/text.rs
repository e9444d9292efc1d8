/// Why HLO text was refused; [`GraphError::Text`](super::GraphError::Text) says where.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum TextError {
    /// Something else stands there.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What should stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// A bracket or a string without an end.
    #[error("`{opening}` is never closed")]
    Unclosed {
        /// What opens it.
        opening: char,
    },
    /// A number that is none, or past 64 bits.
    #[error("`{text}` is not a whole number of 64 bits")]
    Number {
        /// What stands there.
        text: String,
    },
    /// More numbers than any instruction has.
    #[error("a list of more than {limit} numbers")]
    ListTooLong {
        /// How many are read.
        limit: usize,
    },
    /// Computations inside computations inside computations.
    #[error("computations are nested more than {limit} deep; print them by name")]
    TooDeep {
        /// How deep they may be.
        limit: usize,
    },
    /// An operand that no instruction before has.
    #[error("`{name}` is not an instruction above this one in its computation")]
    UnknownOperand {
        /// The name.
        name: String,
    },
    /// A callee that is missing.
    #[error("`{name}` is not a computation of the module")]
    UnknownComputation {
        /// The name.
        name: String,
    },
    /// Two instructions of a computation with one name.
    #[error("instruction `{name}` is in this computation already; names must be unique")]
    DuplicateInstruction {
        /// The name.
        name: String,
    },
    /// Two roots of a computation.
    #[error("instruction `{name}` is the second ROOT of its computation, which has one")]
    SecondRoot {
        /// Its name.
        name: String,
    },
    /// Two computations with one name.
    #[error("computation `{name}` is in the module already; names must be unique")]
    DuplicateComputation {
        /// The name.
        name: String,
    },
    /// Bytes that are no text.
    #[error("the bytes are not UTF-8")]
    NotUtf8,
}
