use crate::{ConfigurationError, Limits, wire::WireError};

/// A wire form of a kind of batches, which is read without being decoded first.
pub(super) struct EncodedForm<Batch> {
    pub(super) facts: FormFacts,
    pub(super) read: ReadForm<Batch>,
}

/// Reads and checks the configurations of an encoded message; the second argument holds the node of each slot.
type ReadForm<Batch> = fn(&[u8], &[u32], &Limits) -> Result<Batch, ConfigurationError>;

/// What is known of a wire form before its configurations are read.
pub(super) struct FormFacts {
    /// Number of its field in a `ConfigBatch`.
    pub(super) number: u32,
    /// Name of that field.
    pub(super) field: &'static str,
    /// Returns the number of configurations that an encoded message claims to have.
    pub(super) count: fn(&[u8]) -> Result<usize, WireError>,
    /// Returns the number of columns of a node that an encoded message claims to have, if they are of a feature set.
    pub(super) columns: Option<fn(&[u8]) -> usize>,
    /// Returns the maximum number of bytes that reading takes beside the message.
    pub(super) read_bytes: fn(&EncodedSize, &Limits) -> usize,
}

/// The size of a batch before it is read.
pub(super) struct EncodedSize {
    /// Bytes of the message.
    pub(super) bytes: usize,
    /// Number of configurations that it claims to have.
    pub(super) configs: usize,
    /// Number of slots of the graph.
    pub(super) slots: usize,
}
