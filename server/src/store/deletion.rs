//! Deletions from the file, one commit at a time.

use std::{collections::BTreeSet, ops::Bound};

use redb::{Database, ReadableTable as _, Table, WriteTransaction};

use super::{
    Measurement, Subject,
    chosen::ChosenKeys,
    file::{BYTES, FACTS, MEASUREMENTS, held, unreadable},
    graph_tables::{Freed, GraphTables},
    page::MAX_SCANNED,
    reporter_table::ReporterTable,
};

/// What one commit deleted.
pub(super) struct Deleted {
    pub(super) measurements: u64,
    /// The key after which the next commit goes on; `None` if nothing is left.
    pub(super) next: Option<Vec<u8>>,
}

/// What was removed from the table of measurements.
#[derive(Default)]
struct Removed {
    count: u64,
    freed: Vec<Freed>,
    subjects: BTreeSet<Subject>,
    next: Option<Vec<u8>>,
}

/// Maximum number of measurements that one commit deletes.
const DELETED_AT_ONCE: usize = 10_000;

/// Deletes the first of the chosen measurements after a key, and the graphs that have none left.
pub(super) fn delete_some(
    database: &Database,
    chosen: &ChosenKeys,
    after: Option<&[u8]>,
) -> Result<Deleted, redb::Error> {
    let write = database.begin_write()?;
    let mut measurements = write.open_table(MEASUREMENTS)?;
    let mut graphs = GraphTables::open(&write)?;
    let removed = remove(&mut measurements, chosen, after)?;
    // The graphs in the same transaction, so that none is kept without measurements after a crash.
    let mut freed = removed.freed;
    for subject in &removed.subjects {
        if !has_measurements(&measurements, subject)? {
            freed.extend(graphs.remove(subject)?);
        }
    }
    // A transaction commits only once its tables are closed.
    drop((measurements, graphs));
    subtract(&write, &freed)?;
    write.commit()?;
    Ok(Deleted {
        measurements: removed.count,
        next: removed.next,
    })
}

impl Removed {
    /// Counts a record for its reporter and its graph.
    fn add(&mut self, key: &[u8], record: &[u8]) -> Result<(), redb::Error> {
        let (subject, _) = Subject::of_key(key).ok_or_else(unreadable)?;
        self.subjects.insert(subject);
        self.freed.push(Freed {
            reporter: Measurement::reporter_of(record),
            bytes: (key.len() + record.len()) as u64,
        });
        self.count += 1;
        Ok(())
    }
}

/// Removes the first of the chosen records after a key.
fn remove(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    chosen: &ChosenKeys,
    after: Option<&[u8]>,
) -> Result<Removed, redb::Error> {
    let mut removed = Removed::default();
    let mut keys = Vec::new();
    let start = after.map_or(Bound::Included(chosen.prefix.as_slice()), Bound::Excluded);
    for (scanned, entry) in table.range::<&[u8]>((start, Bound::Unbounded))?.enumerate() {
        let (key, record) = entry?;
        let key = key.value();
        if !key.starts_with(&chosen.prefix) {
            break;
        }
        if chosen.has_tag_of(key) {
            removed.add(key, record.value())?;
            keys.push(key.to_vec());
        }
        if keys.len() == DELETED_AT_ONCE || scanned == MAX_SCANNED {
            removed.next = Some(key.to_vec());
            break;
        }
    }
    // Only at the end, because the table cannot change while it is read.
    for key in &keys {
        table.remove(key.as_slice())?;
    }
    Ok(removed)
}

/// Subtracts what was removed from the bytes of its reporters and of the file.
fn subtract(write: &WriteTransaction, removed: &[Freed]) -> Result<(), redb::Error> {
    let mut reporters = ReporterTable::open(write)?;
    let mut held = held(write)?;
    for Freed { reporter, bytes } in removed {
        reporters.subtract(reporter.as_ref(), *bytes)?;
        held = held.saturating_sub(*bytes);
    }
    write.open_table(FACTS)?.insert(BYTES, held)?;
    Ok(())
}

fn has_measurements(
    table: &Table<'_, &'static [u8], &'static [u8]>,
    subject: &Subject,
) -> Result<bool, redb::Error> {
    let prefix = subject.prefix();
    match table.range(prefix.as_slice()..)?.next() {
        Some(entry) => Ok(entry?.0.value().starts_with(&prefix)),
        None => Ok(false),
    }
}
