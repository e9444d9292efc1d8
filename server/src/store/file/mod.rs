//! Measurements in a file of this server, which one thread writes.

pub(super) mod read;
#[cfg(test)]
pub(super) mod simulated;
mod store_file;
pub(super) mod tables;
mod writer;

use std::{path::Path, sync::Arc, thread};

use redb::ReadTransaction;
use tokio::sync::{mpsc, oneshot};

use self::{
    store_file::StoreFile,
    writer::{Addition, Command, Writer},
};
use super::{
    DecisionProposal, MeasurementFilter, OpenStoreError, ReportOutcome, StoreError, StoreFault,
    StoredDecision, report::Report,
};
use crate::metrics::StoreSeries;

/// Measurements in a file of this server.
pub(super) struct FileStore {
    file: Arc<StoreFile>,
    commands: mpsc::Sender<Command>,
    /// Whether the file was there before.
    pub(super) existed: bool,
}

/// Maximum number of commands that wait for the writer. Further calls wait for a place.
const MAX_WAITING: usize = 1_024;

impl FileStore {
    /// Opens the file, which is created if it is missing. Blocks while it reads the whole file to check it.
    pub(super) fn open(
        path: &Path,
        limit: u64,
        series: Arc<StoreSeries>,
    ) -> Result<Self, OpenStoreError> {
        let existed = path.exists();
        let file = Arc::new(StoreFile::open(path)?);
        if let Ok(totals) = file.totals() {
            tracing::info!(
                path = %path.display(),
                measurements = totals.measurements,
                decisions = totals.decisions,
                "measurements are kept"
            );
        }
        // One thread writes, because the file has one writer at a time and a commit waits for the
        // disk.
        let (sender, commands) = mpsc::channel(MAX_WAITING);
        let writer = Writer {
            file: Arc::clone(&file),
            commands,
            limit,
            series,
        };
        writer.sample();
        let thread = thread::Builder::new().name("measurements".to_owned());
        let started = thread.spawn(|| writer.run());
        started.map_err(|error| OpenStoreError {
            at: path.display().to_string(),
            reason: StoreFault::Io(error),
        })?;
        Ok(Self {
            file,
            commands: sender,
            existed,
        })
    }

    /// Adds a report, and returns once it is on disk.
    pub(super) async fn report(&self, report: Report) -> Result<ReportOutcome, StoreError> {
        self.ask(|answer| Command::Add(Addition::Report(report, answer)))
            .await
    }

    /// Stores a decision, and returns it once it is on disk; nothing if another one answers.
    pub(super) async fn propose(
        &self,
        proposal: DecisionProposal,
    ) -> Result<Option<StoredDecision>, StoreError> {
        self.ask(|answer| Command::Add(Addition::Decision(proposal, answer)))
            .await
    }

    /// Reads the file on a thread that may wait for the disk. After a failure to write, such as a full disk, the file is
    /// opened again and read a second time.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        read: impl Fn(&ReadTransaction) -> Result<T, redb::Error> + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        match self.read_once(read.clone()).await {
            Err(StoreError::Failed(_)) => {
                // The writer opens it, because it also closes and opens the file between commits.
                self.ask(Command::Reopen).await?;
                self.read_once(read).await
            }
            done => done,
        }
    }

    async fn read_once<T: Send + 'static>(
        &self,
        read: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        #[cfg(test)]
        simulated::pause().await;
        let read = tokio::task::spawn_blocking(move || file.read(read)).await;
        #[cfg(test)]
        simulated::pause().await;
        read.unwrap_or_else(|error| Err(StoreError::Failed(error.to_string())))
    }

    /// Deletes in several commits, so that reports wait only for one of them, and none needs much memory.
    pub(super) async fn delete(&self, chosen: &MeasurementFilter) -> Result<u64, StoreError> {
        let mut deleted = 0;
        let mut after = None;
        loop {
            let delete = |answer| Command::Delete(chosen.clone(), after, answer);
            let part = self.ask(delete).await?;
            deleted += part.measurements;
            after = part.next;
            if after.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// Writes what waits, and closes the file. Later calls fail.
    pub(super) async fn close(&self) {
        // An error means that it is closed.
        let _ = self.ask(Command::Close).await;
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::Failed("the store is closed".to_owned());
        #[cfg(test)]
        simulated::pause().await;
        self.commands
            .send(command(answer))
            .await
            .map_err(|_| closed())?;
        // The writer drops what it has not answered when it ends.
        let answer = answered.await.unwrap_or_else(|_| Err(closed()));
        #[cfg(test)]
        simulated::pause().await;
        answer
    }
}
