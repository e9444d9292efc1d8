use std::sync::Arc;

use tokio::task::JoinHandle;

use super::{
    answer::{LinkError, within},
    link::{Database, Link},
    listen::listen,
    schema::Totals,
};
use crate::{
    metrics::{StoreSeries, set},
    store::{DatabaseUrl, OpenStoreError, Unusable, measurement_store::Changes},
};

/// Measurements in a database. Two connections are used: one to read, and one to write.
pub(in crate::store) struct Shared {
    pub(super) reader: Link,
    pub(super) writer: Link,
    /// Maximum number of bytes of all keys and records.
    pub(super) limit: u64,
    pub(super) series: Arc<StoreSeries>,
    listening: JoinHandle<()>,
}

impl Shared {
    /// Connects to a database. If it does not answer, it is tried again with every use. Fails if the address is none, or if
    /// the database has another format.
    pub(in crate::store) async fn open(
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
    pub(super) async fn sample(&self) {
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
    pub(in crate::store) async fn close(&self) {
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
