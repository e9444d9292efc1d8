use std::sync::Arc;

use redb::{Database, ReadableTable as _, Table, WriteTransaction};
use tokio::sync::{mpsc, oneshot};

use super::{
    KeptGraph, Measurement, Reported, StoreError, Subject,
    file::{BYTES, FACTS, MEASUREMENTS, StoreFile},
    graph_tables::GraphTables,
    report::{Record, bytes_of, new_records, records},
};
use crate::metrics::{StoreSeries, set};

/// Something to write.
pub(super) enum Command {
    /// Adds measurements.
    Report(Report),
    /// Deletes what has keys with this prefix, and answers how many that were.
    Delete(Vec<u8>, Answer<u64>),
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

/// Maximum number of measurements, and of graphs, that one commit deletes.
const DELETED_AT_ONCE: usize = 10_000;

impl Writer {
    /// Writes until the store is closed or dropped.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            match next.take().or_else(|| self.commands.blocking_recv()) {
                Some(Command::Report(report)) => {
                    let mut group = vec![report];
                    while group.len() < MAX_GROUP {
                        match self.commands.try_recv() {
                            Ok(Command::Report(report)) => group.push(report),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.report(group);
                }
                Some(Command::Delete(prefix, answer)) => {
                    let deleted = self.delete(&prefix);
                    self.sample();
                    // The caller may have gone.
                    let _ = answer.send(deleted);
                }
                Some(Command::Close(answer)) => {
                    self.file.close();
                    let _ = answer.send(Ok(()));
                    return;
                }
                None => return,
            }
        }
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

    fn delete(&self, prefix: &[u8]) -> Result<u64, StoreError> {
        let mut deleted = 0;
        loop {
            let some = self.write(|database| delete_some(database, prefix))?;
            deleted += some.measurements as u64;
            if some.measurements < DELETED_AT_ONCE && some.graphs < DELETED_AT_ONCE {
                return Ok(deleted);
            }
        }
    }

    /// Writes to the file. If that fails, the file is opened again for the next command.
    fn write<T>(&self, work: impl FnOnce(&Database) -> Result<T, redb::Error>) -> Result<T, StoreError> {
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
        let Self { subject, measurements, graph, answer } = self;
        let measurements = records(&subject, &measurements);
        (Added { measurements, graph: graph.map(|graph| (subject, graph)) }, answer)
    }
}

/// Adds the records of reports, each as a whole or not at all, in one commit.
fn add(
    database: &Database,
    reports: &[Added],
    limit: u64,
) -> Result<Vec<Result<Reported, StoreError>>, redb::Error> {
    let write = database.begin_write()?;
    let mut held = held(&write)?;
    let mut table = write.open_table(MEASUREMENTS)?;
    let mut graphs = GraphTables::open(&write)?;
    let mut results = Vec::with_capacity(reports.len());
    for Added { measurements: report, graph } in reports {
        let result = match new_records(report, |key, record| is_kept_as(&table, key, record))? {
            Err(refused) => Err(refused),
            Ok(new) => {
                let of_graph = match graph {
                    Some((subject, graph)) => graphs.missing(subject, graph)?,
                    None => None,
                };
                let needed = of_graph.unwrap_or(0) + bytes_of(&new);
                let fits = held.saturating_add(needed) <= limit;
                if !fits && !new.is_empty() {
                    Err(StoreError::Full { held, needed, limit })
                } else {
                    for (key, record) in &new {
                        table.insert(*key, *record)?;
                    }
                    // A report without new measurements is not refused for its graph.
                    let missing = graph.as_ref().filter(|_| fits && of_graph.is_some());
                    if let Some((subject, graph)) = missing {
                        graphs.insert(subject, graph)?;
                    }
                    held += if fits { needed } else { 0 };
                    let accepted = new.len() as u64;
                    Ok(Reported { accepted, known: report.len() as u64 - accepted })
                }
            }
        };
        results.push(result);
    }
    drop((table, graphs));
    write.open_table(FACTS)?.insert(BYTES, held)?;
    write.commit()?;
    Ok(results)
}

/// Returns whether a key is in the table, and if so, whether with this record.
fn is_kept_as(
    table: &Table<'_, &'static [u8], &'static [u8]>,
    key: &[u8],
    record: &[u8],
) -> Result<Option<bool>, redb::Error> {
    Ok(table.get(key)?.map(|kept| kept.value() == record))
}

/// What one commit deleted.
struct Deleted {
    measurements: usize,
    graphs: usize,
}

/// Deletes the first measurements whose keys have this prefix, and the first graphs after the last of them.
fn delete_some(database: &Database, prefix: &[u8]) -> Result<Deleted, redb::Error> {
    let write = database.begin_write()?;
    let (measurements, mut freed) = remove(&mut write.open_table(MEASUREMENTS)?, prefix)?;
    let mut graphs = 0;
    if measurements < DELETED_AT_ONCE {
        let (removed, bytes) = GraphTables::open(&write)?.remove(prefix, DELETED_AT_ONCE)?;
        (graphs, freed) = (removed, freed + bytes);
    }
    let held = held(&write)?.saturating_sub(freed);
    write.open_table(FACTS)?.insert(BYTES, held)?;
    write.commit()?;
    Ok(Deleted { measurements, graphs })
}

/// Removes the first records whose keys have this prefix. Returns how many, and their bytes.
fn remove(
    table: &mut Table<'_, &'static [u8], &'static [u8]>,
    prefix: &[u8],
) -> Result<(usize, u64), redb::Error> {
    let (mut keys, mut freed) = (Vec::new(), 0);
    for entry in table.range(prefix..)?.take(DELETED_AT_ONCE) {
        let (key, record) = entry?;
        if !key.value().starts_with(prefix) {
            break;
        }
        freed += bytes(key.value(), record.value());
        keys.push(key.value().to_vec());
    }
    for key in &keys {
        table.remove(key.as_slice())?;
    }
    Ok((keys.len(), freed))
}

fn held(write: &WriteTransaction) -> Result<u64, redb::Error> {
    Ok(write.open_table(FACTS)?.get(BYTES)?.map_or(0, |bytes| bytes.value()))
}

fn bytes(key: &[u8], record: &[u8]) -> u64 {
    (key.len() + record.len()) as u64
}
