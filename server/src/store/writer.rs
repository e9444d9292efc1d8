use std::sync::Arc;

use redb::{Database, ReadableTable as _, Table};
use tokio::sync::{mpsc, oneshot};

use super::{
    KeptGraph, Measurement, Reported, Reporter, StoreError, Subject,
    chosen::ChosenKeys,
    deletion::delete_some,
    file::{BYTES, FACTS, MEASUREMENTS, StoreFile, held},
    graph_tables::GraphTables,
    report::{Record, Records, bytes_of, counts, new_records, records},
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

impl Writer {
    /// Writes until the store is closed or dropped.
    pub(super) fn run(mut self) {
        let mut next = None;
        while let Some(command) = next.take().or_else(|| self.commands.blocking_recv()) {
            match command {
                Command::Report(first) => {
                    // Reports that came while the last commit waited for the disk share the next
                    // one.
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
        // A commit that fails has added nothing, so all of its reports fail.
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
        // In several commits, so that one neither holds the writer for long nor needs much memory.
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
        // redb refuses all uses of a database after a failed write, so it has to be opened anew.
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
        // One call sends a report, so all of its measurements have one reporter.
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
        let counts = counts(&report.measurements, &records);
        let graph = self.missing_graph(report)?;
        let of_graph = graph.map_or(0, |(subject, graph)| graph.bytes_for(subject));
        let needed = of_graph + bytes_of(&records);
        let reporter = report.reporter.as_ref();
        // Earlier reports of the same commit count, too, although it is not on disk yet.
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
