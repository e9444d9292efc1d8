use tokio_postgres::{Client, Error, GenericClient, Transaction};

use super::link_error::{LinkError, within};

/// How much the database holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) measurements: i64,
    /// Bytes of all keys, records and graphs.
    pub(super) bytes: i64,
}

/// The format that this version writes and reads.
const FORMAT: i64 = 3;

/// Servers that start at the same time create the tables one after the other.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('hlorank_store'))";

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS hlorank_measurements (
        key bytea PRIMARY KEY,
        record bytea NOT NULL,
        reporter bytea NOT NULL
    );
    CREATE INDEX IF NOT EXISTS hlorank_reporters_keys ON hlorank_measurements (reporter, key);
    CREATE TABLE IF NOT EXISTS hlorank_graphs (
        key bytea PRIMARY KEY,
        kind bytea NOT NULL,
        structure bytea NOT NULL UNIQUE,
        message bytea NOT NULL,
        bytes bigint NOT NULL,
        reporter bytea NOT NULL
    );
    CREATE TABLE IF NOT EXISTS hlorank_reporters (reporter bytea PRIMARY KEY, bytes bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS hlorank_store (
        number int PRIMARY KEY CHECK (number = 1),
        format bigint NOT NULL,
        measurements bigint NOT NULL,
        bytes bigint NOT NULL
    );
    INSERT INTO hlorank_store VALUES (1, 3, 0, 0) ON CONFLICT DO NOTHING";

/// Creates the tables if they are missing, and checks their format.
pub(super) async fn prepare(client: &mut Client) -> Result<(), LinkError> {
    // Asked first, so that a role without the right to create tables can use existing ones.
    let exists = "SELECT to_regclass('hlorank_store') IS NOT NULL";
    let exists: bool = within(client.query_one(exists, &[])).await?.get(0);
    if !exists {
        within(create(client)).await?;
    }
    let format = "SELECT format FROM hlorank_store";
    let format: i64 = within(client.query_one(format, &[])).await?.get(0);
    if format == FORMAT {
        return Ok(());
    }
    Err(LinkError::OtherFormat {
        found: format.unsigned_abs(),
        known: FORMAT.unsigned_abs(),
    })
}

/// Creates the tables, unless another server did.
async fn create(client: &mut Client) -> Result<(), Error> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK).await?;
    transaction.batch_execute(TABLES).await?;
    transaction.commit().await
}

impl Totals {
    pub(super) async fn read(client: &Client) -> Result<Self, Error> {
        Self::select(client, "").await
    }

    /// Reads them, and keeps other writers waiting until the transaction ends.
    pub(super) async fn lock(transaction: &Transaction<'_>) -> Result<Self, Error> {
        Self::select(transaction, " FOR UPDATE").await
    }

    async fn select(client: &impl GenericClient, lock: &str) -> Result<Self, Error> {
        let select = format!("SELECT measurements, bytes FROM hlorank_store{lock}");
        let row = client.query_one(&select, &[]).await?;
        Ok(Self {
            measurements: row.get(0),
            bytes: row.get(1),
        })
    }

    pub(super) async fn write(self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let Self {
            measurements,
            bytes,
        } = self;
        let update = "UPDATE hlorank_store SET measurements = $1, bytes = $2";
        transaction
            .execute(update, &[&measurements, &bytes])
            .await
            .map(drop)
    }
}
