use std::{collections::BTreeSet, ops::Bound, sync::Arc};

use redb::{Database, ReadableTable as _, Table, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

use super::{
    KeptGraph, Measurement, Reported, Reporter, StoreError, Subject,
    chosen::ChosenKeys,
    file::{BYTES, FACTS, MEASUREMENTS, StoreFile, unreadable},
    graph_tables::GraphTables,
    page::MAX_SCANNED,
    report::{Record, Records, bytes_of, new_records, records},
    reporter_table::ReporterTable,
    room::Room,
};
use crate::metrics::{StoreSeries, set};

/// Something to write.
pub(super) enum Command {
    /// Adds measurements.
    Report(Report),
    /// Deletes the chosen measurements, and answers how many that were.
    Delete(ChosenKeys, Answer<u64>),
    /// Opens the file again after a failure, at least to be read.
    Reopen(Answer<()>),
    /// Closes the file.
    Close(Answer<()>),
}

/// Measurements to add.
pub(super) struct Report {
    pub(super) subject: Subject,
    pub(super) measurements: Vec<Measurement>,
    /// The graph that they are of, if it may not be kept yet.
    pub(super) graph: Option<KeptGraph>,
    pub(super) answer: Answer<Reported>,
}

/// What a report adds.
struct Added {
    /// Who reports, if it is known.
    reporter: Option<Reporter>,
    measurements: Vec<Record>,
    graph: Option<(Subject, KeptGraph)>,
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// The thread that writes the file. Reports that wait together are one commit, which is one wait for the disk.
pub(super) struct Writer {
    pub(super) file: Arc<StoreFile>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Maximum number of bytes of all keys and records.
    pub(super) limit: u64,
    pub(super) series: Arc<StoreSeries>,
}

/// Maximum number of reports of one commit.
const MAX_GROUP: usize = 256;

/// Maximum number of measurements that one commit deletes.
const DELETED_AT_ONCE: usize = 10_000;

impl Writer {
    /// Writes until the store is closed or dropped.
    pub(super) fn run(mut self) {
        let mut next = None;
        while let Some(command) = next.take().or_else(|| self.commands.blocking_recv()) {
            match command {
                Command::Report(first) => {
                    let mut group = vec![first];
                    next = self.collect(&mut group);
                    self.report(group);
                }
                Command::Delete(chosen, answer) => {
                    let deleted = self.delete(&chosen);
                    self.sample();
                    // The caller may have gone.
                    let _ = answer.send(deleted);
                }
                Command::Reopen(answer) => {
                    let _ = answer.send(self.reopen_to_read());
                }
                Command::Close(answer) => {
                    self.file.close();
                    let _ = answer.send(Ok(()));
                    return;
                }
            }
        }
    }

    /// Adds the reports that wait to a group. Returns the command after them, if one waits.
    fn collect(&mut self, group: &mut Vec<Report>) -> Option<Command> {
        while group.len() < MAX_GROUP {
            match self.commands.try_recv() {
                Ok(Command::Report(report)) => group.push(report),
                Ok(other) => return Some(other),
                Err(_) => return None,
            }
        }
        None
    }

    /// Sets the gauges.
    fn sample(&self) {
        if let Ok(totals) = self.file.totals() {
            set(&self.series.measurements, totals.measurements);
            set(&self.series.bytes, totals.bytes);
        }
    }

    fn report(&self, group: Vec<Report>) {
        let (added, answers): (Vec<_>, Vec<_>) = group.into_iter().map(Report::added).unzip();
        let results = self.write(|database| add(database, &added, self.limit));
        self.sample();
        let results = results.unwrap_or_else(|error| vec![Err(error); added.len()]);
        for (answer, result) in answers.into_iter().zip(results) {
            if let Ok(Reported { accepted, known }) = &result {
                self.series.accepted.increment(*accepted);
                self.series.known.increment(*known);
            }
            let _ = answer.send(result);
        }
    }

    fn delete(&self, chosen: &ChosenKeys) -> Result<u64, StoreError> {
        let mut deleted = 0;
        let mut after = None;
        loop {
            let some = self.write(|database| delete_some(database, chosen, after.as_deref()))?;
            deleted += some.measurements;
            after = some.next;
            if after.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// Opens the file to be read, if it is not open, or cannot be read any more.
    fn reopen_to_read(&self) -> Result<(), StoreError> {
        if self.file.totals().is_err() {
            self.file.close();
        }
        self.file.reopen_to_read()
    }

    /// Writes to the file. If that fails, the file is opened again for the next command.
    fn write<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let written = self.file.reopen().and_then(|()| self.file.with(work));
        if let Err(error) = &written {
            tracing::error!(%error, "measurements were not written");
            self.series.failures.increment(1);
            self.file.close();
        }
        written
    }
}

impl Report {
    fn added(self) -> (Added, Answer<Reported>) {
        let Self {
            subject,
            measurements,
            graph,
            answer,
        } = self;
        let first = measurements.first();
        let added = Added {
            reporter: first.and_then(|first| first.reporter.clone()),
            measurements: records(&subject, &measurements),
            graph: graph.map(|graph| (subject, graph)),
        };
        (added, answer)
    }
}

/// The tables that a report writes.
struct Tables<'a> {
    measurements: Table<'a, &'static [u8], &'static [u8]>,
    graphs: GraphTables<'a>,
    reporters: ReporterTable<'a>,
}

/// Adds the records of reports, each as a whole or not at all, in one commit.
fn add(
    database: &Database,
    reports: &[Added],
    limit: u64,
) -> Result<Vec<Result<Reported, StoreError>>, redb::Error> {
    let write = database.begin_write()?;
    let mut held = held(&write)?;
    let mut tables = Tables {
        measurements: write.open_table(MEASUREMENTS)?,
        graphs: GraphTables::open(&write)?,
        reporters: ReporterTable::open(&write)?,
    };
    let mut results = Vec::with_capacity(reports.len());
    for report in reports {
        results.push(tables.add(report, &mut held, limit)?);
    }
    drop(tables);
    write.open_table(FACTS)?.insert(BYTES, held)?;
    write.commit()?;
    Ok(results)
}

impl Tables<'_> {
    /// Adds a report unless it is refused. `held` counts the bytes of the file.
    fn add(
        &mut self,
        report: &Added,
        held: &mut u64,
        limit: u64,
    ) -> Result<Result<Reported, StoreError>, redb::Error> {
        let is_kept_as = |key: &[u8], record: &[u8]| {
            let kept = self.measurements.get(key)?;
            Ok::<_, redb::Error>(kept.map(|kept| kept.value() == record))
        };
        let records = match new_records(&report.measurements, is_kept_as)? {
            Ok(records) => records,
            Err(refused) => return Ok(Err(refused)),
        };
        let accepted = records.len() as u64;
        let counts = Reported {
            accepted,
            known: report.measurements.len() as u64 - accepted,
        };
        let graph = self.missing_graph(report)?;
        let of_graph = graph.map_or(0, |(subject, graph)| graph.bytes_for(subject));
        let needed = of_graph + bytes_of(&records);
        let reporter = report.reporter.as_ref();
        let room = self.room(limit, *held, reporter)?;
        match room.check(needed) {
            Err(refused) if !records.is_empty() => return Ok(Err(refused)),
            // A report without new measurements is not refused for its graph.
            Err(_) => return Ok(Ok(counts)),
            Ok(()) => {}
        }
        self.insert(&records, graph)?;
        if needed > 0 {
            self.reporters.add(reporter, needed)?;
        }
        *held += needed;
        Ok(Ok(counts))
    }

    fn insert(
        &mut self,
        records: &Records<'_>,
        graph: Option<(&Subject, &KeptGraph)>,
    ) -> Result<(), redb::Error> {
        for (key, record) in records {
            self.measurements.insert(*key, *record)?;
        }
        match graph {
            Some((subject, graph)) => self.graphs.insert(subject, graph),
            None => Ok(()),
        }
    }

    /// Returns the graph of a report if it is not kept yet.
    fn missing_graph<'a>(
        &self,
        report: &'a Added,
    ) -> Result<Option<(&'a Subject, &'a KeptGraph)>, redb::Error> {
        match &report.graph {
            Some((subject, graph)) if !self.graphs.has(subject)? => Ok(Some((subject, graph))),
            _ => Ok(None),
        }
    }

    fn room<'a>(
        &self,
        limit: u64,
        held: u64,
        reporter: Option<&'a Reporter>,
    ) -> Result<Room<'a>, redb::Error> {
        let reporter = match reporter {
            Some(reporter) => Some((reporter, self.reporters.bytes(reporter)?)),
            None => None,
        };
        Ok(Room {
            limit,
            held,
            reporter,
        })
    }
}

/// What one commit deleted.
struct Deleted {
    measurements: u64,
    /// The key after which the next commit goes on; `None` if nothing is left.
    next: Option<Vec<u8>>,
}

/// What is removed of each reporter.
type Freed = Vec<(Option<Reporter>, u64)>;

/// Deletes the first of the chosen measurements after a key, and the graphs that have none left.
fn delete_some(
    database: &Database,
    chosen: &ChosenKeys,
    after: Option<&[u8]>,
) -> Result<Deleted, redb::Error> {
    let write = database.begin_write()?;
    let mut measurements = write.open_table(MEASUREMENTS)?;
    let mut graphs = GraphTables::open(&write)?;
    let removed = remove(&mut measurements, chosen, after)?;
    let mut freed = removed.freed;
    for subject in &removed.subjects {
        if !has_measurements(&measurements, subject)? {
            freed.extend(graphs.remove(&subject.prefix(), 1)?);
        }
    }
    drop((measurements, graphs));
    let mut reporters = ReporterTable::open(&write)?;
    let mut held = held(&write)?;
    for (reporter, bytes) in &freed {
        reporters.subtract(reporter.as_ref(), *bytes)?;
        held = held.saturating_sub(*bytes);
    }
    drop(reporters);
    write.open_table(FACTS)?.insert(BYTES, held)?;
    write.commit()?;
    Ok(Deleted {
        measurements: removed.count,
        next: removed.next,
    })
}

/// What was removed from the table of measurements.
#[derive(Default)]
struct Removed {
    count: u64,
    freed: Freed,
    subjects: BTreeSet<Subject>,
    next: Option<Vec<u8>>,
}

impl Removed {
    /// Counts a record for its reporter and its graph.
    fn add(&mut self, key: &[u8], record: &[u8]) -> Result<(), redb::Error> {
        let (subject, _) = Subject::of_key(key).ok_or_else(unreadable)?;
        self.subjects.insert(subject);
        let bytes = (key.len() + record.len()) as u64;
        self.freed.push((Measurement::reporter_of(record), bytes));
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
    // Only now, because the table cannot change while it is read.
    for key in &keys {
        table.remove(key.as_slice())?;
    }
    Ok(removed)
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

fn held(write: &WriteTransaction) -> Result<u64, redb::Error> {
    let facts = write.open_table(FACTS)?;
    let bytes = facts.get(BYTES)?;
    Ok(bytes.map_or(0, |bytes| bytes.value()))
}
