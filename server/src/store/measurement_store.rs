use std::{path::PathBuf, sync::Arc, thread};

use hlorank_graph::{Digest, Task};
use tokio::sync::{mpsc, oneshot};

use super::{
    Changed, KeptGraph, Measurement, OpenStoreError, Page, Reported, StoreError, Subject, Unusable,
    changes::Changes,
    file::StoreFile,
    key::target_prefix,
    writer::{Command, Report, Writer},
};
use crate::metrics::{StoreSeries, set};

/// The measurements that clients reported.
pub struct MeasurementStore {
    file: Arc<StoreFile>,
    commands: mpsc::Sender<Command>,
    changes: Changes,
    series: Arc<StoreSeries>,
}

/// Maximum number of commands that wait for the writer. Further calls wait for a place.
const MAX_WAITING: usize = 1_024;

impl MeasurementStore {
    /// Opens the store in a file, which is created if it is missing. It holds at most `limit` bytes of keys and records;
    /// the file takes about three times as much. Blocks while it reads the whole file to check it.
    pub fn open(path: PathBuf, limit: u64, series: Arc<StoreSeries>) -> Result<Self, OpenStoreError> {
        let file = Arc::new(StoreFile::open(&path)?);
        if let Ok(totals) = file.totals() {
            tracing::info!(path = %path.display(), measurements = totals.measurements, "measurements are kept");
            set(&series.measurements, totals.measurements);
            set(&series.bytes, totals.bytes);
            set(&series.max_bytes, limit);
        }
        let (sender, commands) = mpsc::channel(MAX_WAITING);
        let writer = Writer { file: Arc::clone(&file), commands, limit, series: Arc::clone(&series) };
        let started = thread::Builder::new().name("measurements".to_owned()).spawn(|| writer.run());
        started.map_err(|error| OpenStoreError { path, reason: Unusable::Io(error) })?;
        Ok(Self { file, commands: sender, changes: Changes::default(), series })
    }

    /// Adds measurements, all or none, and the graph that they are of, if it is not kept yet. Returns once they are on disk.
    pub async fn report(
        &self,
        subject: Subject,
        measurements: Vec<Measurement>,
        graph: Option<KeptGraph>,
    ) -> Result<Reported, StoreError> {
        let of = subject.clone();
        let report = |answer| Command::Report(Report { subject, measurements, graph, answer });
        let reported = self.ask(report).await?;
        if reported.accepted > 0 {
            self.changes.add(of);
        }
        Ok(reported)
    }

    /// Returns the graph of a subject, if it is kept.
    pub async fn graph(&self, subject: Subject) -> Result<Option<KeptGraph>, StoreError> {
        self.read(move |file| file.graph(&subject)).await
    }

    /// Returns whether the graph of a subject is kept.
    pub async fn has_graph(&self, subject: Subject) -> Result<bool, StoreError> {
        self.read(move |file| file.has_graph(&subject)).await
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, in the order of their keys, from the one after
    /// `after`.
    pub async fn subjects(
        &self,
        after: Option<Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        self.read(move |file| file.subjects(after.as_ref(), count)).await
    }

    /// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
    /// hashes.
    pub async fn alike(
        &self,
        subject: Subject,
        structure: Digest,
        count: usize,
    ) -> Result<Vec<Subject>, StoreError> {
        self.read(move |file| file.alike(&subject, structure, count)).await
    }

    /// Waits until measurements were added or deleted since the last call, and returns which.
    pub async fn changed(&self) -> Changed {
        self.changes.next().await
    }

    /// Returns at most `count` measurements, fewer if they are large: of one graph on a target, of a target or of all, from
    /// the one after the key `after`. The same set has the same pages.
    pub async fn list(
        &self,
        target: Option<&str>,
        graph: Option<Digest>,
        after: Option<Vec<u8>>,
        count: usize,
    ) -> Result<Page, StoreError> {
        let prefix = prefix(target, graph);
        self.read(move |file| file.page(&prefix, after.as_deref(), count)).await
    }

    /// Reads the file on a thread that may wait for the disk.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&StoreFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        let read = tokio::task::spawn_blocking(move || read(&file)).await;
        let read = read.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string())));
        read.inspect_err(|error| {
            tracing::error!(%error, "measurements were not read");
            self.series.failures.increment(1);
        })
    }

    /// Deletes the measurements of a target, or those of one graph on it. Returns how many there were.
    pub async fn delete(&self, target: &str, graph: Option<Digest>) -> Result<u64, StoreError> {
        let prefix = prefix(Some(target), graph);
        let deleted = self.ask(|answer| Command::Delete(prefix, answer)).await;
        self.changes.add_all();
        deleted
    }

    /// Writes what waits, and closes the file. Later calls fail.
    pub async fn close(&self) {
        // An error means that it is closed.
        let _ = self.ask(Command::Close).await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::Failed("the store is closed".to_owned());
        self.commands.send(command(answer)).await.map_err(|_| closed())?;
        answered.await.unwrap_or_else(|_| Err(closed()))
    }
}

/// What the keys of these measurements begin with.
fn prefix(target: Option<&str>, graph: Option<Digest>) -> Vec<u8> {
    match (target, graph) {
        (None, _) => Vec::new(),
        (Some(target), None) => target_prefix(target),
        (Some(target), Some(graph)) => Subject { target: target.to_owned(), graph }.prefix(),
    }
}
