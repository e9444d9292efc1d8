//! What servers share of searches.

use hlorank_graph::Digest;
use tokio_postgres::Client;

use super::{
    PostgresStore,
    link::{LinkError, within},
};
use crate::store::StoreError;

/// The first use of a search is also when those are forgotten that nobody used for a day.
const FORGET: &str =
    "DELETE FROM hlorank_searches WHERE used < clock_timestamp() - interval '1 day'";

impl PostgresStore {
    /// Changes what is kept of a search, given its bytes and the milliseconds of the database's clock.
    pub(crate) async fn change_search<T>(
        &self,
        key: Digest,
        change: impl FnOnce(&[u8], u64) -> (Vec<u8>, T),
    ) -> Result<T, StoreError> {
        let mut client = self.writer.client().await?;
        Ok(within(changed(&mut client, key, change)).await?)
    }
}

async fn changed<T>(
    client: &mut Client,
    Digest(key): Digest,
    change: impl FnOnce(&[u8], u64) -> (Vec<u8>, T),
) -> Result<T, LinkError> {
    let key = &key[..];
    let transaction = client.transaction().await?;
    let add =
        "INSERT INTO hlorank_searches VALUES ($1, '', clock_timestamp()) ON CONFLICT DO NOTHING";
    if transaction.execute(add, &[&key]).await? > 0 {
        transaction.execute(FORGET, &[]).await?;
    }
    // Locked until the transaction ends, so that servers change it one after the other. The time is asked for once it is locked.
    let lock = "SELECT leases FROM hlorank_searches WHERE key = $1 FOR UPDATE";
    let row = transaction.query_one(lock, &[&key]).await?;
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let now: i64 = transaction.query_one(now, &[]).await?.get(0);
    let before: &[u8] = row.get(0);
    let (after, done) = change(before, now.unsigned_abs());
    if after != before {
        let update =
            "UPDATE hlorank_searches SET leases = $2, used = clock_timestamp() WHERE key = $1";
        transaction.execute(update, &[&key, &after]).await?;
    }
    transaction.commit().await?;
    Ok(done)
}
