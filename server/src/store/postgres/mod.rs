//! Measurements in a PostgreSQL database, which several servers share.
//!
//! Keys and records are those of the file. A report is one transaction, which locks the row with the totals first, so reports
//! of all servers come one after the other; it is acknowledged after the commit. A connection is checked before it is used, and
//! opened again if it was lost.

mod link;
mod link_error;
mod listen;
mod read;
mod schema;
mod write;

use std::sync::Arc;

use tokio::task::JoinHandle;

use self::{
    link::{Database, Link},
    link_error::{LinkError, within},
    listen::listen,
    schema::Totals,
};
use super::{DatabaseUrl, OpenStoreError, Unusable, changes::Changes};
use crate::metrics::{StoreSeries, set};

/// Measurements in a database. Two connections are used: one to read, and one to write.
pub(super) struct Shared {
    reader: Link,
    writer: Link,
    /// Maximum number of bytes of all keys and records.
    limit: u64,
    series: Arc<StoreSeries>,
    listening: JoinHandle<()>,
}

impl Shared {
    /// Connects to a database. If it does not answer, it is tried again with every use. Fails if the address is none, or if
    /// the database has another format.
    pub(super) async fn open(
        url: &DatabaseUrl,
        limit: u64,
        changes: Arc<Changes>,
        series: Arc<StoreSeries>,
    ) -> Result<Self, OpenStoreError> {
        let database = Database::of(url).map_err(|reason| OpenStoreError {
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
            reason: Unusable::OtherFormat { found, known },
        }),
        LinkError::Failed(reason) => {
            tracing::warn!(
                database = database.name(),
                reason,
                "the database of measurements does not answer; it is tried again with every use"
            );
            Ok(())
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
