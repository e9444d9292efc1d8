use std::{collections::HashSet, path::Path, sync::Arc};

use hlorank_graph::{Digest, Task};

use super::{
    DatabaseUrl, DecisionFilter, DecisionLookup, DecisionPage, DecisionProposal, DecisionView,
    KeptGraph, Measurement, MeasurementFilter, OpenStoreError, Page, ReportOutcome, Reporter,
    ReporterFilter, SharedLeases, StoreError, StoredDecision, Subject,
    changes::{Changes, MeasurementChange},
    file::{FileStore, read},
    postgres::PostgresStore,
    report::Report,
};
use crate::metrics::{StoreSeries, set};

/// The measurements that clients reported.
pub struct MeasurementStore {
    kept: StoreBackend,
    changes: Arc<Changes>,
    series: Arc<StoreSeries>,
}

/// Where they are.
enum StoreBackend {
    File(FileStore),
    Database(Box<PostgresStore>),
}

/// Reads what the store has, by the function of the file or the method of the database of this name.
macro_rules! read {
    ($store:ident.$method:ident($($argument:expr),*)) => {
        $store.noted(match &$store.kept {
            StoreBackend::File(file) => {
                file.read(move |read| read::$method(read, $($argument),*)).await
            }
            StoreBackend::Database(database) => database.$method($($argument),*).await,
        })
    };
}

impl MeasurementStore {
    /// Opens the store in a file, which is created if it is missing. It holds at most `limit` bytes of keys and records;
    /// the file takes about three times as much. Blocks while it reads the whole file to check it.
    pub fn open(path: &Path, limit: u64, series: Arc<StoreSeries>) -> Result<Self, OpenStoreError> {
        let file = FileStore::open(path, limit, Arc::clone(&series))?;
        set(&series.max_bytes, limit);
        Ok(Self {
            kept: StoreBackend::File(file),
            changes: Arc::default(),
            series,
        })
    }

    /// Uses the store in a PostgreSQL database, which other servers may use too. A database that does not answer is tried
    /// again with every use.
    pub async fn connect(
        url: &DatabaseUrl,
        limit: u64,
        series: Arc<StoreSeries>,
    ) -> Result<Self, OpenStoreError> {
        let changes = Arc::<Changes>::default();
        let database =
            PostgresStore::open(url, limit, Arc::clone(&changes), Arc::clone(&series)).await?;
        set(&series.max_bytes, limit);
        Ok(Self {
            kept: StoreBackend::Database(Box::new(database)),
            changes,
            series,
        })
    }

    /// Adds measurements, all or none, and the graph that they are of, if it is not kept yet. Returns once they are on disk.
    pub async fn report(
        &self,
        subject: Subject,
        measurements: impl AsRef<[Measurement]>,
        graph: Option<KeptGraph>,
    ) -> Result<ReportOutcome, StoreError> {
        let Some(report) = Report::new(subject.clone(), measurements.as_ref(), graph) else {
            return Ok(ReportOutcome::default());
        };
        let reported = match &self.kept {
            StoreBackend::File(file) => file.report(report).await?,
            StoreBackend::Database(database) => self.noted(database.report(&report).await)?,
        };
        self.series.accepted.increment(reported.accepted);
        self.series.known.increment(reported.known);
        // A database notifies all servers, this one too.
        if reported.accepted > 0 && matches!(self.kept, StoreBackend::File(_)) {
            self.changes.add(subject);
        }
        Ok(reported)
    }

    /// Returns the digests of the configurations that have measurements of a graph.
    pub(crate) async fn measured(&self, subject: &Subject) -> Result<Vec<Digest>, StoreError> {
        let subject = subject.clone();
        read!(self.measured(&subject))
    }

    /// Whether several servers may use it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self.kept, StoreBackend::Database(_))
    }

    /// Whether this server may have leased what it does not know of any more, because it was started anew.
    pub(crate) fn may_have_lost_leases(&self) -> bool {
        matches!(&self.kept, StoreBackend::File(file) if file.existed)
    }

    /// Changes what servers share of a search, or of the claim of a key. `change` gets the bytes, which are none at first, the number
    /// of claims of a client, and the milliseconds of the database's clock. A file shares nothing, and keeps nothing.
    pub(crate) async fn change_leases<T: Send>(
        &self,
        key: Digest,
        client: &str,
        change: impl FnOnce(&[u8], usize, u64) -> (Option<SharedLeases>, T) + Send,
    ) -> Result<T, StoreError> {
        self.noted(match &self.kept {
            StoreBackend::File(_) => Ok(change(&[], 0, 0).1),
            StoreBackend::Database(database) => database.change_leases(key, client, change).await,
        })
    }

    /// Returns the graph of a subject, if it is kept.
    pub async fn graph(&self, subject: Subject) -> Result<Option<KeptGraph>, StoreError> {
        read!(self.graph(&subject))
    }

    /// Returns whether the graph of a subject is kept.
    pub async fn has_graph(&self, subject: Subject) -> Result<bool, StoreError> {
        read!(self.has_graph(&subject))
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, in the order of their keys, from the one after
    /// `after`.
    pub async fn subjects(
        &self,
        after: Option<Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        read!(self.subjects(after.as_ref(), count))
    }

    /// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
    /// hashes.
    pub async fn alike(
        &self,
        subject: Subject,
        structure: Digest,
        count: usize,
    ) -> Result<Vec<Subject>, StoreError> {
        read!(self.alike(&subject, structure, count))
    }

    /// Number of times that measurements were added or deleted since the start.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.count()
    }

    /// Waits until measurements were added or deleted since the last call, and returns which.
    pub async fn changed(&self) -> MeasurementChange {
        self.changes.next().await
    }

    /// Draws the keys of at most `count` measurements of a graph: the first of every configuration, then the second of every
    /// configuration that has one, and so on. The same set has the same draw.
    pub async fn draw(
        &self,
        subject: &Subject,
        whose: &ReporterFilter,
        count: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut drawn = match whose.first() {
            None => Vec::new(),
            first => self.draw_of(subject, first, count).await?,
        };
        if !matches!(whose, ReporterFilter::Only(_)) && drawn.len() < count {
            let all = self.draw_of(subject, None, count).await?;
            let first: HashSet<Vec<u8>> = drawn.iter().cloned().collect();
            drawn.extend(all.into_iter().filter(|key| !first.contains(key)));
            drawn.truncate(count);
        }
        Ok(drawn)
    }

    /// Draws measurements of all reporters, or of one.
    async fn draw_of(
        &self,
        subject: &Subject,
        reporter: Option<&Reporter>,
        count: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let (subject, reporter) = (subject.clone(), reporter.cloned());
        read!(self.draw(&subject, reporter.as_ref(), count))
    }

    /// Reads the measurements of the first of some keys, as many as fit a page, but not those that were deleted meanwhile. Returns
    /// also the number of these keys.
    pub async fn read(&self, keys: &[Vec<u8>]) -> Result<(Vec<Measurement>, usize), StoreError> {
        let keys = keys.to_vec();
        read!(self.measurements(&keys))
    }

    /// Returns at most `count` of the chosen measurements, fewer if they are large or among many others, from the one after the
    /// key `after`. The same set has the same pages.
    pub async fn list(
        &self,
        chosen: &MeasurementFilter,
        after: Option<Vec<u8>>,
        count: usize,
    ) -> Result<Page, StoreError> {
        let chosen = chosen.clone();
        read!(self.page(&chosen, after.as_deref(), count))
    }

    /// Deletes the chosen measurements, and graphs that have none left. Returns how many measurements there were.
    pub async fn delete(&self, chosen: &MeasurementFilter) -> Result<u64, StoreError> {
        match &self.kept {
            StoreBackend::File(file) => {
                let deleted = file.delete(chosen).await;
                // Even if it failed: some of its commits may have succeeded.
                if deleted != Ok(0) {
                    self.changes.add_all();
                }
                deleted
            }
            StoreBackend::Database(database) => self.noted(database.delete(chosen).await),
        }
    }

    /// Looks up a decision.
    pub async fn decision(&self, lookup: &DecisionLookup) -> Result<DecisionView, StoreError> {
        let (lookup, found) = (lookup.clone(), lookup.snapshot);
        let view = read!(self.decision(&lookup))?;
        // What will be decided up to a snapshot of another store is not known.
        if found > view.snapshot {
            return Err(StoreError::UnknownSnapshot {
                found,
                latest: view.snapshot,
            });
        }
        Ok(view)
    }

    /// The metrics of the store.
    pub(crate) fn series(&self) -> &StoreSeries {
        &self.series
    }

    /// Stores a decision, and returns it once it is on disk; nothing if another one answers.
    pub async fn propose(
        &self,
        proposal: DecisionProposal,
    ) -> Result<Option<StoredDecision>, StoreError> {
        match &self.kept {
            StoreBackend::File(file) => file.propose(proposal).await,
            StoreBackend::Database(database) => self.noted(database.propose(proposal).await),
        }
    }

    /// Returns at most `count` of the chosen decisions in the order in which they were made, fewer if they are large or among
    /// many others.
    pub async fn decisions(
        &self,
        chosen: &DecisionFilter,
        count: usize,
    ) -> Result<DecisionPage, StoreError> {
        let chosen = chosen.clone();
        read!(self.decisions(&chosen, count))
    }

    /// Writes what waits, and closes the store. Later calls fail.
    pub async fn close(&self) {
        match &self.kept {
            StoreBackend::File(file) => file.close().await,
            StoreBackend::Database(database) => database.close().await,
        }
    }

    /// Counts and logs a failure.
    fn noted<T>(&self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error @ StoreError::Failed(_)) = &done {
            tracing::error!(%error, "measurements were not read or written");
            self.series.failures.increment(1);
        }
        done
    }
}
