//! Measurements in a PostgreSQL database, which several servers share.
//!
//! Keys and records are those of the file. A report is one transaction, which locks the row with the totals first, so reports
//! of all servers come one after the other; it is acknowledged after the commit. A connection is checked before it is used, and
//! opened again if it was lost.

use std::{sync::Arc, time::Duration};

use hlorank_graph::{from_hex, to_hex};
use tokio::{
    sync::mpsc::{self, Receiver},
    task::JoinHandle,
    time::sleep,
};
use tokio_postgres::Client;

use self::link::{Database, Link, LinkError, Totals, latest_snapshot, within};
use super::{DatabaseUrl, OpenStoreError, StoreFault, Subject, changes::Changes};
use crate::metrics::{StoreSeries, set};

mod decisions;
mod leases;
mod link;
mod read;
mod write;

/// Measurements in a database. Two connections are used: one to read, and one to write.
pub(super) struct PostgresStore {
    reader: Link,
    writer: Link,
    /// Maximum number of bytes of all keys and records.
    limit: u64,
    series: Arc<StoreSeries>,
    listening: JoinHandle<()>,
}

impl PostgresStore {
    /// Connects to a database. If it does not answer, it is tried again with every use. Fails if the address is none, or if
    /// the database has another format.
    pub(super) async fn open(
        url: &DatabaseUrl,
        limit: u64,
        changes: Arc<Changes>,
        series: Arc<StoreSeries>,
    ) -> Result<Self, OpenStoreError> {
        let database = Database::new(url).map_err(|reason| OpenStoreError {
            at: "postgres://".to_owned(),
            reason,
        })?;
        let database = Arc::new(database);
        let [reader, writer] = [(); 2].map(|()| Link::new(Arc::clone(&database)));
        if let Err(error) = writer.client().await {
            refuse_other_format(&database, error)?;
        }
        // A connection of its own, since it waits for as long as the server runs.
        let listening = tokio::spawn(listen(database, changes));
        let shared = Self {
            reader,
            writer,
            limit,
            series,
            listening,
        };
        shared.sample().await;
        Ok(shared)
    }

    /// Sets the gauges, if the database answers.
    async fn sample(&self) {
        if let Ok(client) = self.reader.client().await
            && let Ok(totals) = within(Totals::read(&client)).await
        {
            set(
                &self.series.measurements,
                totals.measurements.unsigned_abs(),
            );
            set(&self.series.bytes, totals.bytes.unsigned_abs());
            if let Ok(decisions) = within(latest_snapshot(&*client)).await {
                set(&self.series.decisions, decisions);
            }
        }
    }

    /// Closes the connections. They are opened again if they are used.
    pub(super) async fn close(&self) {
        self.listening.abort();
        self.reader.close().await;
        self.writer.close().await;
    }
}

/// Refuses a database of another format. That one does not answer is only logged.
fn refuse_other_format(database: &Database, error: LinkError) -> Result<(), OpenStoreError> {
    match error {
        LinkError::OtherFormat { found, known } => Err(OpenStoreError {
            at: database.name(),
            reason: StoreFault::OtherFormat { found, known },
        }),
        failed => {
            tracing::warn!(
                database = database.name(),
                reason = %failed,
                "the database of measurements does not answer; it is tried again with every use"
            );
            Ok(())
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Name of what servers notify each other by.
pub(super) const CHANNEL: &str = "hlorank_measurements";

/// Number of notes that are not read yet.
const MAX_WAITING: usize = 1_024;

/// Time until a connection that was lost is opened again.
const RETRY: Duration = Duration::from_secs(5);

/// Passes on which measurements servers changed, this one or others. Nobody knows what changed while there was no connection,
/// so everything may have.
async fn listen(database: Arc<Database>, changes: Arc<Changes>) {
    loop {
        if let Ok((_client, mut notes)) = connect(&database).await {
            // Only once the connection listens, so that no change falls between the two.
            changes.add_all();
            while let Some(note) = notes.recv().await {
                match subject_of(&note) {
                    Some(subject) => changes.add(subject),
                    None => changes.add_all(),
                }
            }
        }
        sleep(RETRY).await;
    }
}

async fn connect(database: &Database) -> Result<(Client, Receiver<String>), LinkError> {
    let (sender, notes) = mpsc::channel(MAX_WAITING);
    let client = database.connect(Some(sender)).await?;
    within(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
    Ok((client, notes))
}

/// What a note says about changed measurements of one graph on a target.
pub(super) fn note_of(subject: &Subject) -> String {
    // Targets may contain bytes that no text of the database has.
    to_hex(&subject.prefix())
}

/// The subject of a note; `None` if it is about more.
fn subject_of(note: &str) -> Option<Subject> {
    Subject::of_prefix(&from_hex(note)?)
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;

    use super::*;

    #[test]
    fn a_note_gives_the_subject_back() {
        let subject = Subject {
            target: "a board".to_owned(),
            graph: Digest([200; 32]),
        };
        assert_eq!(subject_of(&note_of(&subject)), Some(subject));
        assert_eq!(subject_of(""), None);
    }
}
