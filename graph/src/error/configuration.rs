use crate::{Task, wire::WireError};

/// The reason why a batch of configurations was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigurationError {
    /// The message is not protobuf, or not a batch.
    #[error("the batch is not a readable message: {detail}")]
    Malformed {
        /// What is wrong.
        detail: String,
    },
    /// The batch sets more than one form.
    #[error("the batch holds configurations in more than one field of configs; send one")]
    SeveralForms,
    /// The batch is empty.
    #[error("the batch has no configurations; send at least one")]
    Empty,
    /// The batch has too many configurations.
    #[error(
        "the batch has {found} configurations, at most {limit} are accepted; send several batches"
    )]
    TooMany {
        /// Configurations sent.
        found: usize,
        /// Configurations allowed.
        limit: usize,
    },
    /// The batch has too many entries: configurations times configurable nodes, and times columns for a feature set.
    #[error(
        "the batch has {configs} configurations of {slots} entries each, {} entries in all, at most {limit} are accepted; send several batches",
        configs.saturating_mul(*slots)
    )]
    TooManyEntries {
        /// Configurations.
        configs: usize,
        /// Entries of a configuration.
        slots: usize,
        /// Entries allowed.
        limit: usize,
    },
    /// The configurations are of another task than the graph, such as tiles for a layout graph.
    #[error("the batch holds {batch} configurations, but the graph is for {graph}")]
    WrongTask {
        /// Task of the batch.
        batch: Task,
        /// Task of the graph.
        graph: Task,
    },
    /// The graph has no configurable node.
    #[error(
        "the graph has no configurable nodes, so there is nothing to rank; it needs a convolution, dot or reshape, or configurable_nodes"
    )]
    NothingToConfigure,
    /// The program has no node that can be fused.
    #[error(
        "no node of the program can be fused into a user, so there is nothing to rank; a slot is a node that a loop \
         fusion can compute and that has such a user"
    )]
    NothingToFuse,
    /// Node features without a node or a column.
    #[error(
        "a configuration has no columns; set column_count to the number of configuration columns of the feature set, or send a \
         value for each parameter"
    )]
    NoColumns,
    /// Parameters of different numbers.
    #[error(
        "configuration {config} has {found} values, but configuration 0 has {expected}; send a value for every column"
    )]
    ParameterCount {
        /// Number of the configuration.
        config: usize,
        /// Number of its values.
        found: usize,
        /// Number of values of the first.
        expected: usize,
    },
    /// Node features in both forms.
    #[error("the batch sets features and also rows or row_indices; send one of both forms")]
    DenseAndTable,
    /// Node features of another width than the model takes.
    #[error(
        "column_count is {found}, but the feature set of the model has {expected} configuration columns"
    )]
    WrongColumns {
        /// Columns of the batch.
        found: usize,
        /// Columns of the feature set.
        expected: usize,
    },
    /// A feature that is not a finite number.
    #[error("{what} is not a finite number")]
    NotFinite {
        /// Configuration or row, node and column.
        what: String,
    },
    /// A configuration sets bits behind that of the last slot.
    #[error(
        "configuration {config} sets bits behind that of the last of {slots} slots; the unused bits of its last byte \
         must be 0"
    )]
    UnusedBits {
        /// Number of the configuration.
        config: usize,
        /// Slots of the program.
        slots: usize,
    },
    /// A configuration sets a node that is not configurable.
    #[error(
        "configuration {config} sets node {node}, which is not configurable; PutGraph lists the nodes that are"
    )]
    NotConfigurable {
        /// Number of the configuration.
        config: usize,
        /// The node.
        node: u32,
    },
    /// A configuration fuses a node that is no slot.
    #[error(
        "configuration {config} fuses node {node}, which is no slot: a loop fusion cannot compute it, or it has no such \
         user; PutGraph lists the slots"
    )]
    NotFusible {
        /// Number of the configuration.
        config: usize,
        /// The node.
        node: u32,
    },
    /// A configuration changes a slot that the graph does not have.
    #[error(
        "configuration {config} changes slot {slot}, which is not configurable: the graph has {slots} slots"
    )]
    NoSuchSlot {
        /// Number of the configuration.
        config: usize,
        /// The slot.
        slot: u32,
        /// Configurable nodes of the graph.
        slots: usize,
    },
    /// A configuration sets a node or slot twice.
    #[error("configuration {config} sets {what} {number} twice")]
    SetTwice {
        /// Number of the configuration.
        config: usize,
        /// `node` or `slot`.
        what: &'static str,
        /// Its number.
        number: u32,
    },
    /// An array has the wrong length.
    #[error("{what} has {found} entries, expected {expected}")]
    WrongCount {
        /// The array, with the configuration or node that it belongs to.
        what: String,
        /// Entries found.
        found: usize,
        /// Entries expected.
        expected: usize,
    },
    /// A value is not a whole number.
    #[error("{what} has a value that is not a whole number")]
    NotWhole {
        /// The entry.
        what: String,
    },
    /// No lists of at most six bounds have these tile features.
    #[error("configuration {config}: its features are not those of lists of at most six bounds")]
    NotBounds {
        /// Number of the configuration.
        config: usize,
    },
    /// A list has more tensors, dimensions or bounds than allowed.
    #[error("{what} has {found} entries, at most {limit} are allowed")]
    TooLong {
        /// The list.
        what: String,
        /// Entries found.
        found: usize,
        /// Entries allowed.
        limit: usize,
    },
    /// A value is outside its range.
    #[error("{what} is {found}, outside {range}")]
    OutOfRange {
        /// The value's place.
        what: String,
        /// The value.
        found: i64,
        /// The allowed range.
        range: &'static str,
    },
    /// A layout lists a dimension twice.
    #[error(
        "configuration {config}, node {node}: the layout of {tensor} lists dimension {dimension} twice"
    )]
    DimensionTwice {
        /// Number of the configuration.
        config: usize,
        /// The node.
        node: u32,
        /// The tensor.
        tensor: &'static str,
        /// The dimension.
        dimension: i8,
    },
    /// A layout lists a dimension that its tensor does not have.
    #[error(
        "configuration {config}, node {node}: the layout of {tensor} lists dimension {dimension}, but the tensor has \
         at most {rank} dimensions, from 0"
    )]
    NoSuchDimension {
        /// Number of the configuration.
        config: usize,
        /// The node.
        node: u32,
        /// The tensor.
        tensor: &'static str,
        /// The dimension.
        dimension: i8,
        /// Maximum number of dimensions.
        rank: usize,
    },
    /// A bound of a tile is not positive.
    #[error("configuration {config}: a bound of {list} is {found}; bounds must be at least 1")]
    Bound {
        /// Number of the configuration.
        config: usize,
        /// The list of bounds.
        list: &'static str,
        /// The bound.
        found: i64,
    },
    /// The product of the bounds of a tile overflows.
    #[error("configuration {config}: the bounds of {list} make more than 2^63 elements")]
    TileTooLarge {
        /// Number of the configuration.
        config: usize,
        /// The list of bounds.
        list: &'static str,
    },
    /// An index is past the end of its table.
    #[error(
        "configuration {config} uses entry {index} of slot {slot}, whose table has {entries} entries"
    )]
    IndexOutsideTable {
        /// Number of the configuration.
        config: usize,
        /// The slot.
        slot: usize,
        /// The index.
        index: u32,
        /// Entries in the table.
        entries: usize,
    },
}

impl From<WireError> for ConfigurationError {
    fn from(error: WireError) -> Self {
        Self::Malformed {
            detail: error.to_string(),
        }
    }
}
