//! The tables of the file, and what adding to and removing from them takes.

use std::ops::Bound;

use prost::Message as _;
use redb::{
    Key, Range, ReadTransaction, ReadableTable, Table, TableDefinition, Value, WriteTransaction,
};

use crate::store::{
    DecisionProposal, GraphKind, KeptGraph, Measurement, Reporter, StoreError, StoredDecision,
    Subject,
    key::{end_of_prefix, reporter_key},
    report::{Room, bytes_of_record},
};

/// Maximum number of measurements that are looked at for a page or a deletion, of which those of one reporter may be few.
pub(super) const MAX_SCANNED: usize = 100_000;

pub(super) fn unreadable() -> redb::Error {
    redb::Error::Corrupted("a record is unreadable".to_owned())
}

type Bytes = &'static [u8];

/// The entries of a table whose keys begin with a prefix.
pub(super) fn under<'a, V: Value + 'static>(
    table: &'a impl ReadableTable<Bytes, V>,
    prefix: &[u8],
) -> Result<Range<'a, Bytes, V>, redb::Error> {
    let end = end_of_prefix(prefix);
    let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    Ok(table.range::<&[u8]>((Bound::Included(prefix), end))?)
}

/// The records by key.
pub(crate) const MEASUREMENTS: TableDefinition<'_, Bytes, Bytes> =
    TableDefinition::new("measurements");

/// The same keys, in each of which the reporter comes before the configuration.
pub(super) const REPORTERS_KEYS: TableDefinition<'_, Bytes, ()> =
    TableDefinition::new("reporters_keys");

/// The compressed messages of graphs by subject.
pub(super) const GRAPHS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("graphs");

/// The [`GraphKind`] of each of these graphs by subject. A list of subjects reads none of the large messages.
pub(super) const SUBJECTS: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("subjects");

/// The same subjects by target, structure and graph hash.
pub(super) const STRUCTURES: TableDefinition<'_, Bytes, ()> = TableDefinition::new("structures");

/// The bytes that the measurements and graphs of each reporter take, by name.
const REPORTERS: TableDefinition<'_, Bytes, u64> = TableDefinition::new("reporters");

/// The decisions by snapshot.
pub(crate) const DECISIONS: TableDefinition<'_, u64, Bytes> = TableDefinition::new("decisions");

/// The snapshots of decisions by subject, audience and generation.
pub(crate) const DECISION_KEYS: TableDefinition<'_, Bytes, u64> =
    TableDefinition::new("decision_keys");

/// Numbers about the file.
pub(crate) const FACTS: TableDefinition<'_, &str, u64> = TableDefinition::new("facts");

/// Name of the number of bytes of all keys, records and graphs in [`FACTS`].
pub(super) const BYTES: &str = "bytes";

/// Copies all tables of a file into an empty one.
pub(super) fn copy(from: &ReadTransaction, to: &WriteTransaction) -> Result<(), redb::Error> {
    copy_table(from, to, MEASUREMENTS)?;
    copy_table(from, to, REPORTERS_KEYS)?;
    copy_table(from, to, GRAPHS)?;
    copy_table(from, to, SUBJECTS)?;
    copy_table(from, to, STRUCTURES)?;
    copy_table(from, to, REPORTERS)?;
    copy_table(from, to, DECISIONS)?;
    copy_table(from, to, DECISION_KEYS)?;
    copy_table(from, to, FACTS)
}

fn copy_table<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), redb::Error> {
    let mut copied = to.open_table(table)?;
    for entry in from.open_table(table)?.iter()? {
        let (key, value) = entry?;
        copied.insert(key.value(), value.value())?;
    }
    Ok(())
}

/// Bytes that something took which was removed, and who reported or brought it.
pub(super) struct FreedSpace {
    pub(super) reporter: Reporter,
    pub(super) bytes: u64,
}

/// The tables, while they are written.
pub(super) struct Tables<'a> {
    pub(super) measurements: Table<'a, Bytes, Bytes>,
    reporters_keys: Table<'a, Bytes, ()>,
    messages: Table<'a, Bytes, Bytes>,
    kinds: Table<'a, Bytes, Bytes>,
    structures: Table<'a, Bytes, ()>,
    reporters: Table<'a, Bytes, u64>,
    decisions: Table<'a, u64, Bytes>,
    decision_keys: Table<'a, Bytes, u64>,
    facts: Table<'a, &'static str, u64>,
}

impl<'a> Tables<'a> {
    /// Opens the tables, and creates them if they are missing.
    pub(super) fn open(write: &'a WriteTransaction) -> Result<Self, redb::Error> {
        Ok(Self {
            measurements: write.open_table(MEASUREMENTS)?,
            reporters_keys: write.open_table(REPORTERS_KEYS)?,
            messages: write.open_table(GRAPHS)?,
            kinds: write.open_table(SUBJECTS)?,
            structures: write.open_table(STRUCTURES)?,
            reporters: write.open_table(REPORTERS)?,
            decisions: write.open_table(DECISIONS)?,
            decision_keys: write.open_table(DECISION_KEYS)?,
            facts: write.open_table(FACTS)?,
        })
    }

    /// Bytes of all keys, records and graphs.
    pub(super) fn held(&self) -> Result<u64, redb::Error> {
        Ok(self.facts.get(BYTES)?.map_or(0, |bytes| bytes.value()))
    }

    /// Bytes of a reporter.
    pub(super) fn held_by(&self, reporter: &Reporter) -> Result<u64, redb::Error> {
        let bytes = self.reporters.get(reporter.name().as_bytes())?;
        Ok(bytes.map_or(0, |bytes| bytes.value()))
    }

    /// Changes the number of bytes of all and that of a reporter. A reporter without bytes has no row.
    pub(super) fn count(
        &mut self,
        reporter: &Reporter,
        change: impl Fn(u64) -> u64,
    ) -> Result<(), redb::Error> {
        let held = change(self.held()?);
        self.facts.insert(BYTES, held)?;
        let name = reporter.name().as_bytes();
        match change(self.held_by(reporter)?) {
            0 => drop(self.reporters.remove(name)?),
            bytes => drop(self.reporters.insert(name, bytes)?),
        }
        Ok(())
    }

    /// Bytes of all, the maximum, and those of a reporter.
    pub(super) fn room(&self, reporter: &Reporter, limit: u64) -> Result<Room, redb::Error> {
        Ok(Room {
            limit,
            held: self.held()?,
            of_reporter: self.held_by(reporter)?,
        })
    }

    /// Stores a decision unless another one answers, which returns nothing, or the proposal is refused.
    pub(super) fn decide(
        &mut self,
        proposal: &DecisionProposal,
        limit: u64,
    ) -> Result<Result<Option<StoredDecision>, StoreError>, redb::Error> {
        let mut latest = None;
        for audience in proposal.audiences() {
            let prefix = proposal.subject.prefix(audience);
            if let Some(entry) = under(&self.decision_keys, &prefix)?.next_back() {
                let record = self
                    .decisions
                    .get(entry?.1.value())?
                    .ok_or_else(unreadable)?;
                latest = Some(StoredDecision::decode(record.value()).map_err(|_| unreadable())?);
                break;
            }
        }
        let snapshot = self
            .decisions
            .last()?
            .map_or(0, |(snapshot, _)| snapshot.value());
        let decision = match proposal.clone().after(latest.as_ref(), snapshot) {
            Ok(Some(decision)) => decision,
            other => return Ok(other),
        };
        let bytes = decision.bytes();
        if let Err(full) = self
            .room(&proposal.reporter, limit)?
            .check(&proposal.reporter, bytes)
        {
            return Ok(Err(full));
        }
        self.decisions
            .insert(decision.snapshot, &decision.encode_to_vec()[..])?;
        self.decision_keys
            .insert(&decision.index_key()[..], decision.snapshot)?;
        self.count(&proposal.reporter, |held| held + bytes)?;
        Ok(Ok(Some(decision)))
    }

    pub(super) fn insert(
        &mut self,
        subject_bytes: usize,
        key: &[u8],
        record: &[u8],
    ) -> Result<(), redb::Error> {
        self.measurements.insert(key, record)?;
        let by_reporter = reporter_key(subject_bytes, key);
        self.reporters_keys.insert(&by_reporter[..], ())?;
        Ok(())
    }

    /// Removes a record.
    pub(super) fn remove(
        &mut self,
        subject: &Subject,
        key: &[u8],
    ) -> Result<FreedSpace, redb::Error> {
        let by_reporter = reporter_key(subject.prefix().len(), key);
        self.reporters_keys.remove(&by_reporter[..])?;
        let record = self.measurements.remove(key)?.ok_or_else(unreadable)?;
        Ok(FreedSpace {
            reporter: Measurement::reporter_of(record.value()).ok_or_else(unreadable)?,
            bytes: bytes_of_record(key, record.value()),
        })
    }

    /// Returns whether the graph of a subject is kept.
    pub(super) fn has_graph(&self, subject: &Subject) -> Result<bool, redb::Error> {
        Ok(self.kinds.get(subject.prefix().as_slice())?.is_some())
    }

    pub(super) fn insert_graph(
        &mut self,
        subject: &Subject,
        graph: &KeptGraph,
    ) -> Result<(), redb::Error> {
        let key = subject.prefix();
        let structure = subject.structure_key(graph.kind.structure);
        self.messages.insert(&key[..], &graph.message[..])?;
        self.kinds.insert(&key[..], &graph.kind.record()[..])?;
        self.structures.insert(&structure[..], ())?;
        Ok(())
    }

    /// Removes the graph of a subject, if it is kept.
    pub(super) fn remove_graph(
        &mut self,
        subject: &Subject,
    ) -> Result<Option<FreedSpace>, redb::Error> {
        let key = subject.prefix();
        let kind = match self.kinds.remove(&key[..])? {
            None => return Ok(None),
            Some(record) => GraphKind::of_record(record.value()).ok_or_else(unreadable)?,
        };
        // The key in the table of structures begins with the structure, which only the kind knows.
        let structure = subject.structure_key(kind.structure);
        self.structures.remove(&structure[..])?;
        let message = self.messages.remove(&key[..])?;
        let length = message.map_or(0, |message| message.value().len());
        Ok(Some(FreedSpace {
            bytes: kind.bytes(subject, length),
            reporter: kind.reporter,
        }))
    }

    /// Whether a subject has measurements.
    pub(super) fn has_measurements(&self, subject: &Subject) -> Result<bool, redb::Error> {
        let first = under(&self.measurements, &subject.prefix())?.next();
        Ok(first.transpose()?.is_some())
    }
}
