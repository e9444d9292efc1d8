use crate::Task;

/// Why a batch of configurations was refused.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigurationError {
    /// No candidates.
    #[error("the batch has no configurations; send at least one")]
    Empty,
    /// Too many candidates.
    #[error("the batch has {found} configurations, at most {limit} are taken; send several batches")]
    TooMany {
        /// How many were sent.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Candidates times configurable nodes over the limit.
    #[error(
        "the batch has {configs} configurations of {slots} nodes each, {} entries in all, at most {limit} are taken; send several batches",
        configs.saturating_mul(*slots)
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
    /// A value that is not a whole number.
    #[error("{what} has a value that is not a whole number")]
    NotWhole {
        /// Which entry.
        what: String,
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
