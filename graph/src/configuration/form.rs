use hlorank_proto::v1::config_batch::Configs;

use super::{Configurations, Scope, Task};
use crate::{ConfigurationError, Limits};

/// A batch as a message holds it, before it is read and checked.
pub trait Form {
    /// The task of its configurations.
    fn task(&self) -> Task;

    /// Name of the field that holds it.
    fn field(&self) -> &'static str;

    /// Number of configurations that the message claims to have.
    fn count(&self) -> usize;

    /// Maximum number of bytes that reading takes beside the message, for a graph with this many slots.
    fn read_bytes(&self, slots: usize, limits: &Limits) -> usize;

    /// Reads and checks the configurations; `configurable` holds the node of each slot.
    fn read(&self, configurable: &[u32], limits: &Limits) -> Result<Configurations, ConfigurationError>;

    /// Cuts the message into messages of the same form with at most `size` configurations each, in order.
    fn cut(&self, size: usize) -> Vec<Configs>;
}

/// Numbers of one to two bytes on the wire become vectors of four bytes and more.
pub(super) const DECODED: usize = 8;

/// The form of a batch.
#[must_use]
pub fn form(configs: &Configs) -> &dyn Form {
    match configs {
        Configs::LayoutConfigs(message) => message,
        Configs::PackedLayoutConfigs(message) => message,
        Configs::DeltaLayoutConfigs(message) => message,
        Configs::TileConfigs(message) => message,
        Configs::PackedTileConfigs(message) => message,
    }
}

/// Reads and checks the configurations of a message against a graph of this task; `configurable` holds the node of each
/// of its slots.
pub fn read_form(
    form: &dyn Form,
    task: Task,
    configurable: &[u32],
    limits: &Limits,
) -> Result<Configurations, ConfigurationError> {
    if form.task() != task {
        return Err(ConfigurationError::WrongTask { batch: form.task(), graph: task });
    }
    if task.kind().scope == Scope::Nodes && configurable.is_empty() {
        return Err(ConfigurationError::NothingToConfigure);
    }
    form.read(configurable, limits)
}

/// Cuts a matrix of `count` rows into parts of at most `size` rows. Returns each part with its number of rows.
pub(super) fn cut_rows(matrix: &[u8], count: u32, size: usize) -> impl Iterator<Item = (u32, &[u8])> {
    let width = matrix.len().checked_div(count as usize).unwrap_or_default();
    (0..count as usize).step_by(size.max(1)).map(move |first| {
        let last = (first + size.max(1)).min(count as usize);
        (u32::try_from(last - first).unwrap_or(u32::MAX), &matrix[first * width..last * width])
    })
}
