use std::{collections::HashMap, convert::Infallible};

use tokio_postgres::{Client, Error, Transaction};

use super::{
    answer::within,
    listen::{CHANNEL, note_of},
    read::number,
    schema::Totals,
    shared::Shared,
};
use crate::store::{
    KeptGraph, Measurement, Reported, StoreError, Subject,
    graph::Kind,
    key::end_of_prefix,
    report::{Record, Records, bytes_of, new_records, records},
};

/// Maximum number of measurements, and of graphs, that one transaction deletes.
const DELETED_AT_ONCE: usize = 10_000;

const DELETE_MEASUREMENTS: &str = "
    WITH gone AS (
        DELETE FROM hlorank_measurements WHERE key IN (
            SELECT key FROM hlorank_measurements WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) ORDER BY key LIMIT $3
        ) RETURNING length(key) + length(record) AS bytes
    )
    SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone";

const DELETE_GRAPHS: &str = "
    WITH gone AS (
        DELETE FROM hlorank_graphs WHERE key IN (
            SELECT key FROM hlorank_graphs WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) ORDER BY key LIMIT $3
        ) RETURNING bytes
    )
    SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone";

impl Shared {
    /// Adds measurements, all or none, and the graph that they are of. Returns once they are on disk.
    pub(in crate::store) async fn report(
        &self,
        subject: &Subject,
        measurements: &[Measurement],
        graph: Option<KeptGraph>,
    ) -> Result<Reported, StoreError> {
        let report = records(subject, measurements);
        let mut client = self.writer.client().await?;
        let added = within(add(&mut client, subject, &report, graph.as_ref(), self.limit)).await?;
        drop(client);
        let reported = added?;
        self.series.accepted.increment(reported.accepted);
        self.series.known.increment(reported.known);
        self.sample().await;
        Ok(reported)
    }

    /// Deletes what has keys with this prefix. Returns how many measurements there were.
    pub(in crate::store) async fn delete(&self, prefix: &[u8]) -> Result<u64, StoreError> {
        let (mut client, mut deleted) = (self.writer.client().await?, 0);
        loop {
            let [measurements, graphs] = within(delete_some(&mut client, prefix)).await?;
            deleted += measurements.unsigned_abs();
            if measurements.max(graphs) < number(DELETED_AT_ONCE) {
                break;
            }
        }
        drop(client);
        self.sample().await;
        Ok(deleted)
    }
}

async fn add(
    client: &mut Client,
    subject: &Subject,
    report: &[Record],
    graph: Option<&KeptGraph>,
    limit: u64,
) -> Result<Result<Reported, StoreError>, Error> {
    let transaction = client.transaction().await?;
    let totals = Totals::lock(&transaction).await?;
    let kept = kept(&transaction, report).await?;
    let is_kept_as =
        |key: &[u8], record: &[u8]| Ok::<_, Infallible>(kept.get(key).map(|kept: &Vec<u8>| kept == record));
    let Ok(new) = new_records(report, is_kept_as);
    let new = match new {
        Ok(new) => new,
        Err(refused) => return Ok(Err(refused)),
    };
    let graph = match graph {
        Some(graph) if !has_graph(&transaction, subject).await? => Some(graph),
        _ => None,
    };
    let needed = bytes_of(&new) + graph.map_or(0, |graph| graph.bytes_for(subject));
    let held = totals.bytes.unsigned_abs();
    let fits = held.saturating_add(needed) <= limit;
    if !fits && !new.is_empty() {
        return Ok(Err(StoreError::Full { held, needed, limit }));
    }
    insert(&transaction, &new).await?;
    // A report without new measurements is not refused for its graph.
    if let Some(graph) = graph.filter(|_| fits) {
        insert_graph(&transaction, subject, graph).await?;
    }
    if fits {
        let measurements = totals.measurements + number(new.len());
        let bytes = totals.bytes + i64::try_from(needed).unwrap_or(i64::MAX);
        Totals { measurements, bytes }.write(&transaction).await?;
    }
    if !new.is_empty() {
        notify(&transaction, &note_of(subject)).await?;
    }
    let accepted = new.len() as u64;
    transaction.commit().await?;
    Ok(Ok(Reported { accepted, known: report.len() as u64 - accepted }))
}

/// The records that are kept of some keys.
async fn kept(transaction: &Transaction<'_>, report: &[Record]) -> Result<HashMap<Vec<u8>, Vec<u8>>, Error> {
    let keys: Vec<&[u8]> = report.iter().map(|(key, _)| key.as_slice()).collect();
    let some = "SELECT key, record FROM hlorank_measurements WHERE key = ANY($1)";
    let rows = transaction.query(some, &[&keys]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn has_graph(transaction: &Transaction<'_>, subject: &Subject) -> Result<bool, Error> {
    let found = "SELECT FROM hlorank_graphs WHERE key = $1";
    Ok(transaction.query_opt(found, &[&subject.prefix()]).await?.is_some())
}

async fn insert(transaction: &Transaction<'_>, new: &Records<'_>) -> Result<(), Error> {
    let (keys, records): (Vec<&[u8]>, Vec<&[u8]>) = new.iter().unzip();
    let insert = "INSERT INTO hlorank_measurements SELECT * FROM unnest($1::bytea[], $2::bytea[])";
    transaction.execute(insert, &[&keys, &records]).await.map(|_| ())
}

async fn insert_graph(
    transaction: &Transaction<'_>,
    subject: &Subject,
    graph: &KeptGraph,
) -> Result<(), Error> {
    let KeptGraph { task, structure, message } = graph;
    let kind = Kind { task: *task, structure: *structure }.record();
    let bytes = i64::try_from(graph.bytes_for(subject)).unwrap_or(i64::MAX);
    let insert = "INSERT INTO hlorank_graphs VALUES ($1, $2, $3, $4, $5)";
    let (key, structure) = (subject.prefix(), subject.structure_key(*structure));
    transaction.execute(insert, &[&key, &&kind[..], &structure, message, &bytes]).await.map(|_| ())
}

/// Deletes the first measurements whose keys have this prefix, and the first graphs after the last of them. Returns how many.
async fn delete_some(client: &mut Client, prefix: &[u8]) -> Result<[i64; 2], Error> {
    let transaction = client.transaction().await?;
    let totals = Totals::lock(&transaction).await?;
    let (end, some) = (end_of_prefix(prefix), number(DELETED_AT_ONCE));
    let row = transaction.query_one(DELETE_MEASUREMENTS, &[&prefix, &end, &some]).await?;
    let (measurements, mut freed): (i64, i64) = (row.get(0), row.get(1));
    let mut graphs = 0;
    if measurements < some {
        let row = transaction.query_one(DELETE_GRAPHS, &[&prefix, &end, &some]).await?;
        graphs = row.get(0);
        freed += row.get::<_, i64>(1);
    }
    let left = Totals { measurements: totals.measurements - measurements, bytes: totals.bytes - freed };
    left.write(&transaction).await?;
    notify(&transaction, "").await?;
    transaction.commit().await?;
    Ok([measurements, graphs])
}

/// Notifies all servers once the transaction is committed.
async fn notify(transaction: &Transaction<'_>, note: &str) -> Result<(), Error> {
    transaction.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &note]).await.map(|_| ())
}
