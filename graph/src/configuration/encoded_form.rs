use super::{Configurations, Task};
use crate::{ConfigurationError, Limits, wire::WireError};

/// A wire form of configurations, which is read without being decoded first.
pub(super) struct EncodedForm {
    /// Number of its field in a `ConfigBatch`.
    pub(super) number: u32,
    /// Name of that field.
    pub(super) field: &'static str,
    pub(super) task: Task,
    /// Returns the number of configurations that an encoded message claims to have.
    pub(super) count: fn(&[u8]) -> Result<usize, WireError>,
    /// Returns the maximum number of bytes that reading takes beside the message.
    pub(super) read_bytes: fn(&EncodedSize, &Limits) -> usize,
    pub(super) read: ReadConfigurations,
}

/// Reads and checks the configurations of an encoded message; the second argument holds the node of each slot.
type ReadConfigurations = fn(&[u8], &[u32], &Limits) -> Result<Configurations, ConfigurationError>;

/// The size of a batch before it is read.
pub(super) struct EncodedSize {
    /// Bytes of the message.
    pub(super) bytes: usize,
    /// Number of configurations that it claims to have.
    pub(super) configs: usize,
    /// Number of slots of the graph.
    pub(super) slots: usize,
}
