use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use redb::{Database, ReadableTable as _};
use tokio::sync::{mpsc, oneshot};

use super::{
    store_file::StoreFile,
    tables::{MAX_SCANNED, Tables, unreadable},
};
use crate::{
    metrics::{StoreSeries, set},
    store::{
        DecisionProposal, Measurement, MeasurementFilter, ReportOutcome, Reporter, StoreError,
        StoredDecision, Subject, report::Report,
    },
};

/// Something to write.
pub(super) enum Command {
    /// Adds something.
    Add(Addition),
    /// Deletes the first of the chosen measurements after a key.
    Delete(MeasurementFilter, Option<Key>, Answer<DeletedPart>),
    /// Opens the file again after a failure, at least to be read.
    Reopen(Answer<()>),
    /// Closes the file.
    Close(Answer<()>),
}

/// Something to add.
pub(super) enum Addition {
    /// Measurements.
    Report(Report, Answer<ReportOutcome>),
    /// A decision, unless another one answers.
    Decision(DecisionProposal, Answer<Option<StoredDecision>>),
}

/// What came of an addition.
enum AdditionResult {
    Report(Result<ReportOutcome, StoreError>),
    Decision(Result<Option<StoredDecision>, StoreError>),
}

type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// The thread that writes the file. Additions that wait together are one commit, which is one wait for the disk.
pub(super) struct Writer {
    pub(super) file: Arc<StoreFile>,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Maximum number of bytes of all keys and records.
    pub(super) limit: u64,
    pub(super) series: Arc<StoreSeries>,
}

/// What one commit deleted.
pub(super) struct DeletedPart {
    pub(super) measurements: u64,
    /// The key after which the next commit goes on; `None` if nothing is left.
    pub(super) next: Option<Key>,
}

/// A key of a table.
pub(super) type Key = Vec<u8>;

/// Maximum number of measurements that one commit deletes.
const DELETED_AT_ONCE: usize = 10_000;

/// Maximum number of additions of one commit.
const MAX_GROUP: usize = 256;

impl Writer {
    /// Writes until the store is closed or dropped.
    pub(super) fn run(mut self) {
        self.compact();
        let mut next = None;
        while let Some(command) = next.take().or_else(|| self.commands.blocking_recv()) {
            match command {
                Command::Add(first) => {
                    // Additions that came while the last commit waited for the disk share the next
                    // one.
                    let mut group = vec![first];
                    next = self.collect(&mut group);
                    self.add(group);
                }
                Command::Delete(chosen, after, answer) => {
                    let deleted = self.delete(&chosen, after.as_deref());
                    let is_last = deleted.as_ref().is_ok_and(|part| part.next.is_none());
                    // The caller may have gone.
                    let _ = answer.send(deleted);
                    if is_last {
                        self.compact();
                    }
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

    /// Adds the additions that wait to a group. Returns the command after them, if one waits.
    fn collect(&mut self, group: &mut Vec<Addition>) -> Option<Command> {
        while group.len() < MAX_GROUP {
            match self.commands.try_recv() {
                Ok(Command::Add(addition)) => group.push(addition),
                Ok(other) => return Some(other),
                Err(_) => return None,
            }
        }
        None
    }

    /// Sets the gauges.
    pub(super) fn sample(&self) {
        if let Ok(totals) = self.file.totals() {
            set(&self.series.measurements, totals.measurements);
            set(&self.series.decisions, totals.decisions);
            set(&self.series.bytes, totals.bytes);
        }
    }

    fn add(&self, group: Vec<Addition>) {
        let added = self.write(|database| add(database, &group, self.limit));
        self.sample();
        let added = added.unwrap_or_else(|error| {
            // A commit that fails has added nothing, so all of its additions fail.
            let failed = |addition: &Addition| match addition {
                Addition::Report(..) => AdditionResult::Report(Err(error.clone())),
                Addition::Decision(..) => AdditionResult::Decision(Err(error.clone())),
            };
            group.iter().map(failed).collect()
        });
        for (addition, added) in group.into_iter().zip(added) {
            // The caller may have gone.
            match (addition, added) {
                (Addition::Report(_, answer), AdditionResult::Report(added)) => {
                    drop(answer.send(added));
                }
                (Addition::Decision(_, answer), AdditionResult::Decision(added)) => {
                    drop(answer.send(added));
                }
                _ => unreachable!("an addition has the result of its kind"),
            }
        }
    }

    fn delete(
        &self,
        chosen: &MeasurementFilter,
        after: Option<&[u8]>,
    ) -> Result<DeletedPart, StoreError> {
        let part = self.write(|database| delete_some(database, chosen, after))?;
        self.series.deleted.increment(part.measurements);
        self.sample();
        Ok(part)
    }

    /// Returns what was deleted to the file system, if that is most of the file.
    fn compact(&self) {
        if let Err(error) = self.file.compact() {
            tracing::warn!(%error, "the file of measurements was not compacted; it stays as it is");
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

/// Adds each as a whole or not at all, in one commit.
fn add(
    database: &Database,
    additions: &[Addition],
    limit: u64,
) -> Result<Vec<AdditionResult>, redb::Error> {
    let write = database.begin_write()?;
    let mut tables = Tables::open(&write)?;
    let added = additions.iter().map(|addition| {
        Ok(match addition {
            Addition::Report(report, _) => {
                AdditionResult::Report(add_to(&mut tables, report, limit)?)
            }
            Addition::Decision(proposal, _) => {
                AdditionResult::Decision(tables.decide(proposal, limit)?)
            }
        })
    });
    let added = added.collect::<Result<_, redb::Error>>()?;
    // A transaction commits only once its tables are closed.
    drop(tables);
    write.commit()?;
    Ok(added)
}

/// Adds a report unless it is refused.
fn add_to(
    tables: &mut Tables<'_>,
    report: &Report,
    limit: u64,
) -> Result<Result<ReportOutcome, StoreError>, redb::Error> {
    let Report {
        subject, reporter, ..
    } = report;
    // Earlier reports of the same commit count, too, although it is not on disk yet.
    let room = tables.room(reporter, limit)?;
    let kept = report.records.iter().map(|(key, record)| {
        let kept = tables.measurements.get(&key[..])?;
        Ok(kept.map(|kept| Measurement::is_same(kept.value(), record)))
    });
    let kept: Vec<Option<bool>> = kept.collect::<Result<_, redb::Error>>()?;
    let additions = match report.additions(&room, tables.has_graph(subject)?, &kept) {
        Ok(additions) => additions,
        Err(refused) => return Ok(Err(refused)),
    };
    let subject_bytes = subject.prefix().len();
    for (key, record) in additions.records {
        tables.insert(subject_bytes, key, record)?;
    }
    if let Some(graph) = additions.graph {
        tables.insert_graph(subject, graph)?;
    }
    if additions.bytes > 0 {
        tables.count(reporter, |held| held + additions.bytes)?;
    }
    Ok(Ok(additions.reported))
}

/// Deletes the first of the chosen measurements after a key, and the graphs that have none left.
fn delete_some(
    database: &Database,
    chosen: &MeasurementFilter,
    after: Option<&[u8]>,
) -> Result<DeletedPart, redb::Error> {
    let write = database.begin_write()?;
    let mut tables = Tables::open(&write)?;
    let (keys, next) = chosen_keys(&tables, chosen, after)?;
    // Without a commit: expired measurements are looked for again and again.
    if keys.is_empty() {
        return Ok(DeletedPart {
            measurements: 0,
            next,
        });
    }
    let mut subjects = BTreeSet::new();
    let mut freed = BTreeMap::<Reporter, u64>::new();
    for key in &keys {
        let (subject, _) = Subject::of_key(key).ok_or_else(unreadable)?;
        let removed = tables.remove(&subject, key)?;
        *freed.entry(removed.reporter).or_default() += removed.bytes;
        subjects.insert(subject);
    }
    // The graphs in the same transaction, so that none is kept without measurements after a crash.
    for subject in &subjects {
        if !tables.has_measurements(subject)?
            && let Some(removed) = tables.remove_graph(subject)?
        {
            *freed.entry(removed.reporter).or_default() += removed.bytes;
        }
    }
    for (reporter, bytes) in freed {
        tables.count(&reporter, |held| held.saturating_sub(bytes))?;
    }
    // A transaction commits only once its tables are closed.
    drop(tables);
    write.commit()?;
    Ok(DeletedPart {
        measurements: keys.len() as u64,
        next,
    })
}

/// Returns the first of the chosen keys after a key, and the key after which there may be more.
fn chosen_keys(
    tables: &Tables<'_>,
    chosen: &MeasurementFilter,
    after: Option<&[u8]>,
) -> Result<(Vec<Key>, Option<Key>), redb::Error> {
    let mut keys = Vec::new();
    let prefix = chosen.prefix();
    let start = after.map_or(Bound::Included(prefix.as_slice()), Bound::Excluded);
    let range = tables
        .measurements
        .range::<&[u8]>((start, Bound::Unbounded))?;
    for (scanned, entry) in range.enumerate() {
        let (key, record) = entry?;
        let key = key.value();
        if !key.starts_with(&prefix) {
            break;
        }
        if chosen.includes(key, record.value()) {
            keys.push(key.to_vec());
        }
        if keys.len() == DELETED_AT_ONCE || scanned == MAX_SCANNED {
            return Ok((keys, Some(key.to_vec())));
        }
    }
    Ok((keys, None))
}
