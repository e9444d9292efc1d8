use hlorank_graph::{Digest, Task};

use super::Subject;

/// A graph whose measurements are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGraph {
    /// Task of its configurations.
    pub task: Task,
    /// The digest of its opcodes and edges.
    pub structure: Digest,
    /// Its message, compressed.
    pub message: Vec<u8>,
}

impl KeptGraph {
    /// Bytes of its keys and records if it is kept for a subject.
    pub(super) fn bytes_for(&self, subject: &Subject) -> u64 {
        bytes_of_graph(subject, self.message.len())
    }
}

/// Bytes of the keys and records of a graph with a message of this length.
pub(super) fn bytes_of_graph(subject: &Subject, message: usize) -> u64 {
    let (key, structure) = (subject.prefix().len(), size_of_val(&subject.graph));
    (3 * key + structure + Kind::BYTES + message) as u64
}

/// Maximum number of bytes of the message of a graph that is kept, before it is compressed.
pub const MAX_GRAPH_BYTES: usize = 64 << 20;

/// What is kept beside the key of a graph, so that graphs are found without their messages: its task and its structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) task: Task,
    pub(super) structure: Digest,
}

impl Kind {
    /// Bytes of its record.
    pub(super) const BYTES: usize = 1 + size_of::<Digest>();

    pub(super) fn record(self) -> [u8; Self::BYTES] {
        let mut record = [self.task.kind().number(); Self::BYTES];
        record[1..].copy_from_slice(&self.structure.0);
        record
    }

    /// Reads what [`Self::record`] wrote; `None` if it was something else.
    pub(super) fn of_record(record: &[u8]) -> Option<Self> {
        let (number, structure) = record.split_first()?;
        let task = Task::ALL.into_iter().find(|task| task.kind().number() == *number)?;
        Some(Self { task, structure: Digest(structure.try_into().ok()?) })
    }
}
