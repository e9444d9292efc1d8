use hlorank_graph::{Digest, Task};

use super::{Reporter, Subject};

/// A graph whose measurements are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGraph {
    /// Task of its configurations.
    pub task: Task,
    /// The digest of its opcodes and edges.
    pub structure: Digest,
    /// Its message, compressed.
    pub message: Vec<u8>,
    /// Who brought it, and whose share of the store it counts in.
    pub reporter: Reporter,
}

impl KeptGraph {
    /// Bytes of its keys and records if it is kept for a subject.
    pub(super) fn bytes_for(&self, subject: &Subject) -> u64 {
        bytes_of_graph(subject, &self.kind(), self.message.len())
    }

    pub(super) fn kind(&self) -> Kind {
        Kind {
            task: self.task,
            structure: self.structure,
            reporter: self.reporter.clone(),
        }
    }
}

/// Bytes of the keys and records of a graph with a message of this length.
pub(super) fn bytes_of_graph(subject: &Subject, kind: &Kind, message: usize) -> u64 {
    let key = subject.prefix().len();
    let structure = size_of_val(&subject.graph);
    (3 * key + structure + kind.record().len() + message) as u64
}

/// Maximum number of bytes of the message of a graph that is kept, before it is compressed.
pub const MAX_GRAPH_BYTES: usize = 64 << 20;

/// What is kept beside the key of a graph, so that graphs are found without their messages: its task, its structure and who
/// brought it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) task: Task,
    pub(super) structure: Digest,
    pub(super) reporter: Reporter,
}

impl Kind {
    /// The graph with this kind and this compressed message.
    pub(super) fn with_message(self, message: Vec<u8>) -> KeptGraph {
        KeptGraph {
            task: self.task,
            structure: self.structure,
            message,
            reporter: self.reporter,
        }
    }

    /// One byte for the task, the structure, and the name of who brought it.
    pub(super) fn record(&self) -> Vec<u8> {
        let mut record = vec![self.task.kind().number()];
        record.extend(self.structure.0);
        record.extend(self.reporter.name().as_bytes());
        record
    }

    /// Reads what [`Self::record`] wrote; `None` if it was something else.
    pub(super) fn of_record(record: &[u8]) -> Option<Self> {
        let (number, structure) = record.split_first()?;
        let (structure, reporter) = structure.split_first_chunk()?;
        let task = Task::ALL
            .into_iter()
            .find(|task| task.kind().number() == *number)?;
        let reporter = Reporter::named(std::str::from_utf8(reporter).ok()?)?;
        Some(Self {
            task,
            structure: Digest(*structure),
            reporter,
        })
    }
}
