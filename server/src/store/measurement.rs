use hlorank_graph::{Digest, Task};
use prost::Message as _;

use super::{
    Reporter, Subject,
    key::{TIME_BYTES, time_key},
};

/// One measurement of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Task of the configuration.
    pub task: Task,
    /// The configuration in its canonical bytes.
    pub config: Vec<u8>,
    /// What tells it from other measurements of the configuration.
    pub id: Vec<u8>,
    /// What came of it.
    pub outcome: Outcome,
    /// Who reported it.
    pub reporter: Reporter,
    /// When it was first reported, in seconds since 1970.
    pub reported_at: u64,
    /// The machine that measured; empty if it was not named.
    pub machine: String,
}

/// What came of measuring a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Mean run time in seconds; 0 if it failed.
    pub seconds: f64,
    /// Number of runs.
    pub repeats: u32,
    /// How it failed, as its number on the wire; 0 if it did not.
    pub failure: i32,
}

/// What came of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportOutcome {
    /// Measurements that are new.
    pub accepted: u64,
    /// Measurements that were reported before.
    pub known: u64,
}

/// A part of the measurements, in the order of their keys: by target, graph and configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The measurements, and what each is about.
    pub measurements: Vec<(Subject, Measurement)>,
    /// The key of the last one that was looked at, if there may be more.
    pub next: Option<Vec<u8>>,
}

/// Maximum size of a page in bytes of keys and records, so that a message holds it.
pub(super) const MAX_PAGE_BYTES: usize = 1 << 20;

/// A graph whose measurements are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGraph {
    /// What is known of it without its message.
    pub kind: GraphKind,
    /// Its message, compressed.
    pub message: Vec<u8>,
}

/// What is kept beside the key of a graph, so that graphs are found without their messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphKind {
    /// Task of its configurations.
    pub task: Task,
    /// The digest of its opcodes and edges.
    pub structure: Digest,
    /// Who brought it, and whose share of the store it counts in.
    pub reporter: Reporter,
}

/// Maximum number of bytes of the message of a graph that is kept, before it is compressed.
pub const MAX_GRAPH_BYTES: usize = 64 << 20;

/// What a record holds behind the time, without what its key holds. Fields may be added.
#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(int32, tag = "1")]
    task: i32,
    #[prost(bytes = "vec", tag = "2")]
    config: Vec<u8>,
    #[prost(double, tag = "3")]
    seconds: f64,
    #[prost(uint32, tag = "4")]
    repeats: u32,
    #[prost(int32, tag = "5")]
    failure: i32,
    #[prost(string, tag = "6")]
    reporter: String,
    #[prost(string, tag = "7")]
    machine: String,
}

/// Length of an id that is made of an outcome.
const ID_BYTES: usize = 16;

impl Outcome {
    /// The id of a measurement that the client gave none: the same outcome has the same id.
    pub fn id(&self) -> Vec<u8> {
        let Self {
            seconds,
            repeats,
            failure,
        } = self;
        let parts: [&[u8]; 3] = [
            // The bits, so that the same outcome has the same id wherever it is computed.
            &seconds.to_bits().to_le_bytes(),
            &repeats.to_le_bytes(),
            &failure.to_le_bytes(),
        ];
        Digest::of_parts("hlorank 2026 measurement", parts).0[..ID_BYTES].to_vec()
    }
}

impl Measurement {
    /// Its key, if it is about this subject.
    pub(super) fn key(&self, subject: &Subject) -> Vec<u8> {
        subject.key(&self.config, &self.id, &self.reporter)
    }

    /// What the file holds of it beside its key.
    pub(super) fn record(&self) -> Vec<u8> {
        let Outcome {
            seconds,
            repeats,
            failure,
        } = self.outcome;
        let mut record = time_key(self.reported_at).to_vec();
        record.extend(
            Record {
                task: self.task.kind().number().into(),
                config: self.config.clone(),
                seconds,
                repeats,
                failure,
                reporter: self.reporter.name().to_owned(),
                machine: self.machine.clone(),
            }
            .encode_to_vec(),
        );
        record
    }

    /// Whether two records of one key are of the same measurement, which may have been reported twice.
    pub(super) fn is_same(record: &[u8], other: &[u8]) -> bool {
        record.get(TIME_BYTES..) == other.get(TIME_BYTES..)
    }

    /// Reads a key and what [`Self::record`] wrote; `None` if one of them is something else.
    pub(super) fn read(key: &[u8], record: &[u8]) -> Option<(Subject, Self)> {
        let (subject, rest) = Subject::of_key(key)?;
        let (time, rest_of_record) = record.split_first_chunk()?;
        let Record {
            task,
            config,
            seconds,
            repeats,
            failure,
            reporter,
            machine,
        } = Record::decode(rest_of_record).ok()?;
        let task = task_of(task)?;
        let reporter = Reporter::named(&reporter)?;
        let id = rest.strip_suffix(&reporter.tag())?;
        let outcome = Outcome {
            seconds,
            repeats,
            failure,
        };
        let measurement = Self {
            id: id.to_vec(),
            task,
            config,
            outcome,
            reporter,
            reported_at: u64::from_be_bytes(*time),
            machine,
        };
        Some((subject, measurement))
    }

    /// The reporter of a record; `None` if it is something else.
    pub(super) fn reporter_of(record: &[u8]) -> Option<Reporter> {
        let record = record.get(TIME_BYTES..)?;
        Reporter::named(&Record::decode(record).ok()?.reporter)
    }
}

impl GraphKind {
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
        Some(Self {
            task: task_of((*number).into())?,
            structure: Digest(*structure),
            reporter: Reporter::named(std::str::from_utf8(reporter).ok()?)?,
        })
    }

    /// Bytes of the keys and records of such a graph with a message of this length, if it is kept for a subject.
    pub(super) fn bytes(&self, subject: &Subject, message: usize) -> u64 {
        let key = subject.prefix().len();
        let structure = size_of_val(&subject.graph);
        (3 * key + structure + self.record().len() + message) as u64
    }
}

fn task_of(number: i32) -> Option<Task> {
    let mut tasks = Task::ALL.into_iter();
    tasks.find(|task| i32::from(task.kind().number()) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_gives_the_measurement_back() {
        let subject = Subject {
            target: "a board".to_owned(),
            graph: Digest([7; 32]),
        };
        for task in Task::ALL {
            let outcome = Outcome {
                seconds: 1.5e-3,
                repeats: 3,
                failure: 0,
            };
            let measurement = Measurement {
                task,
                config: vec![1, 0],
                id: outcome.id(),
                outcome,
                reporter: Reporter::named("192.0.2.7").unwrap(),
                reported_at: 1_800_000_000,
                machine: "node 3".to_owned(),
            };
            let (key, record) = (measurement.key(&subject), measurement.record());
            let reporter = Measurement::reporter_of(&record);
            assert_eq!(reporter.as_ref(), Some(&measurement.reporter));
            let read = Measurement::read(&key, &record);
            assert_eq!(read, Some((subject.clone(), measurement)));
            assert_eq!(Measurement::read(&key, &record[..=TIME_BYTES]), None);
            assert_eq!(Measurement::read(&key, &record[1..TIME_BYTES]), None);
        }
    }

    #[test]
    fn outcomes_that_differ_have_other_ids() {
        let outcome = Outcome {
            seconds: 1.0,
            repeats: 1,
            failure: 0,
        };
        let other = Outcome {
            repeats: 2,
            ..outcome
        };
        assert_eq!(outcome.id(), outcome.id());
        assert_ne!(outcome.id(), other.id());
    }
}
