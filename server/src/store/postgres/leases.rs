//! What servers share of searches and claims.

use hlorank_graph::Digest;
use tokio_postgres::Client;

use super::{
    PostgresStore,
    link::{LinkError, within},
    read::Values,
};
use crate::store::{SharedLeases, StoreError};

/// Adds a key, or locks it until the transaction ends, so that servers change it one after the other.
const LOCK: &str = "
    INSERT INTO hlorank_leases (key, client, leases, until) VALUES ($1, '', '', clock_timestamp())
    ON CONFLICT (key) DO UPDATE SET until = hlorank_leases.until RETURNING leases, xmax = 0 AS is_new";

/// The first use of a key is also when others are forgotten, but for those that are in use.
const FORGET: &str = "
    DELETE FROM hlorank_leases WHERE key IN (
        SELECT key FROM hlorank_leases WHERE until < clock_timestamp() AND key <> $1 FOR UPDATE SKIP LOCKED
    )";

const CLAIMS: &str = "SELECT count(*) FROM hlorank_leases WHERE client = $1";

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

const UPDATE: &str = "
    UPDATE hlorank_leases SET client = $2, leases = $3, until = to_timestamp($4::float8 / 1000) WHERE key = $1";

const DELETE: &str = "DELETE FROM hlorank_leases WHERE key = $1";

impl PostgresStore {
    /// Changes what is kept under a key, given its bytes, the number of claims of a client and the milliseconds of the database's
    /// clock.
    pub(crate) async fn change_leases<T>(
        &self,
        key: Digest,
        client: &str,
        change: impl FnOnce(&[u8], usize, u64) -> (Option<SharedLeases>, T),
    ) -> Result<T, StoreError> {
        let mut link = self.writer.client().await?;
        Ok(within(changed(&mut link, key, client, change)).await?)
    }
}

async fn changed<T>(
    link: &mut Client,
    Digest(key): Digest,
    client: &str,
    change: impl FnOnce(&[u8], usize, u64) -> (Option<SharedLeases>, T),
) -> Result<T, LinkError> {
    let key = &key[..];
    let transaction = link.transaction().await?;
    let row = transaction.query_one(LOCK, &[&key]).await?;
    if row.get("is_new") {
        transaction.execute(FORGET, &[&key]).await?;
    }
    let claims: i64 = if client.is_empty() {
        0
    } else {
        let claims = transaction.query_one(CLAIMS, &[&client.as_bytes()]).await?;
        claims.get(0)
    };
    // The time is asked for once the key is locked.
    let now: i64 = transaction.query_one(NOW, &[]).await?.get(0);
    let claims = usize::try_from(claims).unwrap_or(usize::MAX);
    let (after, done) = change(row.get("leases"), claims, now.unsigned_abs());
    match after {
        #[expect(
            clippy::cast_precision_loss,
            reason = "milliseconds of today are below 2^53"
        )]
        Some(kept) => {
            let (client, until) = (kept.client.as_bytes(), kept.until as f64);
            let values: Values<'_> = &[&key, &client, &kept.bytes, &until];
            transaction.execute(UPDATE, values).await?
        }
        None => transaction.execute(DELETE, &[&key]).await?,
    };
    transaction.commit().await?;
    Ok(done)
}
