use std::{collections::HashMap, convert::Infallible};

use tokio_postgres::{Client, Error, Transaction, types::ToSql};

use super::{
    answer::within,
    listen::{CHANNEL, note_of},
    read::{name_of, number},
    schema::Totals,
    shared::Shared,
};
use crate::store::{
    Chosen, KeptGraph, Measurement, Reported, Reporter, StoreError, Subject,
    key::end_of_prefix,
    report::{Record, Records, Room, bytes_of, counts, new_records, records},
};

/// Maximum number of measurements, and of graphs, that one transaction deletes.
const DELETED_AT_ONCE: usize = 10_000;

/// What a transaction adds.
struct Added<'a> {
    subject: &'a Subject,
    reporter: &'a Reporter,
    report: &'a [Record],
    graph: Option<&'a KeptGraph>,
}

/// What a report has that the database does not have yet.
struct New<'a> {
    records: Records<'a>,
    graph: Option<&'a KeptGraph>,
    /// Bytes that it takes.
    bytes: u64,
}

/// Deletes some measurements of a range, of one reporter if one is given. Returns the number and bytes of each reporter.
const DELETE_MEASUREMENTS: &str = "
    WITH gone AS (
        DELETE FROM hlorank_measurements WHERE key IN (
            SELECT key FROM hlorank_measurements
            WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) AND ($4::bytea IS NULL OR reporter = $4)
            ORDER BY key LIMIT $3
        ) RETURNING reporter, 2 * length(key) + length(record) AS bytes
    )
    SELECT reporter, count(*), sum(bytes)::bigint FROM gone GROUP BY reporter";

/// Deletes some graphs of a range that have no measurements. The key of a graph is what those of its measurements begin with.
const DELETE_GRAPHS: &str = "
    WITH gone AS (
        DELETE FROM hlorank_graphs WHERE key IN (
            SELECT key FROM hlorank_graphs AS graph
            WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) AND NOT EXISTS (
                SELECT FROM hlorank_measurements AS measurement
                WHERE measurement.key > graph.key AND measurement.key < graph.key || decode(repeat('ff', 33), 'hex')
            )
            ORDER BY key LIMIT $3
        ) RETURNING reporter, bytes
    )
    SELECT reporter, count(*), sum(bytes)::bigint FROM gone GROUP BY reporter";

const ADD_TO_REPORTER: &str = "
    INSERT INTO hlorank_reporters VALUES ($1, $2)
    ON CONFLICT (reporter) DO UPDATE SET bytes = hlorank_reporters.bytes + excluded.bytes";

const SUBTRACT_FROM_REPORTER: &str =
    "UPDATE hlorank_reporters SET bytes = bytes - $2 WHERE reporter = $1";

const DELETE_REPORTERS: &str = "DELETE FROM hlorank_reporters WHERE bytes <= 0";

impl Shared {
    /// Adds measurements, all or none, and the graph that they are of. Returns once they are on disk.
    pub(in crate::store) async fn report(
        &self,
        subject: &Subject,
        measurements: &[Measurement],
        graph: Option<KeptGraph>,
    ) -> Result<Reported, StoreError> {
        let Some(first) = measurements.first() else {
            return Ok(Reported::default());
        };
        let report = records(subject, measurements);
        let added = Added {
            subject,
            reporter: &first.reporter,
            report: &report,
            graph: graph.as_ref(),
        };
        let mut client = self.writer.client().await?;
        // An answer that is late may still be a commit. A client that reports again then finds its
        // measurements known.
        let added = within(add(&mut client, &added, self.limit)).await?;
        drop(client);
        let counts = added?;
        self.series.accepted.increment(counts.accepted);
        self.series.known.increment(counts.known);
        self.sample().await;
        Ok(counts)
    }

    /// Deletes the chosen measurements, and graphs that have none left. Returns how many measurements there were.
    pub(in crate::store) async fn delete(&self, chosen: &Chosen) -> Result<u64, StoreError> {
        let mut client = self.writer.client().await?;
        // In several transactions, because each locks the totals, for which reports wait.
        let mut deleted = 0;
        loop {
            let [measurements, graphs] = within(delete_some(&mut client, chosen)).await?;
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

/// Adds in one transaction. The totals are locked first, so that the reports of all servers come one after the other.
async fn add(
    client: &mut Client,
    added: &Added<'_>,
    limit: u64,
) -> Result<Result<Reported, StoreError>, Error> {
    let transaction = client.transaction().await?;
    let totals = Totals::lock(&transaction).await?;
    let new = match added.missing(&transaction).await? {
        Ok(new) => new,
        Err(refused) => return Ok(Err(refused)),
    };
    let counts = counts(added.report, &new.records);
    let room = Room {
        limit,
        held: totals.bytes.unsigned_abs(),
        reporter: added.reporter,
        of_reporter: bytes_of_reporter(&transaction, added.reporter).await?,
    };
    match room.check(new.bytes) {
        Err(refused) if !new.records.is_empty() => return Ok(Err(refused)),
        // A report without new measurements is not refused for its graph.
        Err(_) => return Ok(Ok(counts)),
        Ok(()) => {}
    }
    added.insert(&transaction, &new, totals).await?;
    // A transaction that is dropped before is rolled back.
    transaction.commit().await?;
    Ok(Ok(counts))
}

impl Added<'_> {
    /// Returns what the database does not have yet, or refuses a measurement that it has with another outcome.
    async fn missing(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<Result<New<'_>, StoreError>, Error> {
        let kept = kept(transaction, self.report).await?;
        let is_kept_as = |key: &[u8], record: &[u8]| {
            Ok::<_, Infallible>(kept.get(key).map(|kept: &Vec<u8>| kept == record))
        };
        let Ok(new) = new_records(self.report, is_kept_as);
        let records = match new {
            Ok(records) => records,
            Err(refused) => return Ok(Err(refused)),
        };
        let graph = match self.graph {
            Some(graph) if !has_graph(transaction, self.subject).await? => Some(graph),
            _ => None,
        };
        let of_graph = graph.map_or(0, |graph| graph.bytes_for(self.subject));
        Ok(Ok(New {
            bytes: bytes_of(&records) + of_graph,
            records,
            graph,
        }))
    }

    /// Inserts what is new, and counts it in the totals and for its reporter.
    async fn insert(
        &self,
        transaction: &Transaction<'_>,
        new: &New<'_>,
        totals: Totals,
    ) -> Result<(), Error> {
        insert(transaction, &new.records, self.reporter).await?;
        if let Some(graph) = new.graph {
            insert_graph(transaction, self.subject, graph).await?;
        }
        self.count(transaction, new, totals).await?;
        // The other servers hear of it when the transaction is committed.
        if !new.records.is_empty() {
            notify(transaction, &note_of(self.subject)).await?;
        }
        Ok(())
    }

    async fn count(
        &self,
        transaction: &Transaction<'_>,
        new: &New<'_>,
        totals: Totals,
    ) -> Result<(), Error> {
        let bytes = i64::try_from(new.bytes).unwrap_or(i64::MAX);
        let totals = Totals {
            measurements: totals.measurements + number(new.records.len()),
            bytes: totals.bytes + bytes,
        };
        totals.write(transaction).await?;
        // A reporter without bytes has no row, as in the file.
        if new.bytes > 0 {
            let values: [&(dyn ToSql + Sync); 2] = [&name_of(self.reporter), &bytes];
            transaction.execute(ADD_TO_REPORTER, &values).await?;
        }
        Ok(())
    }
}

async fn bytes_of_reporter(
    transaction: &Transaction<'_>,
    reporter: &Reporter,
) -> Result<u64, Error> {
    let some = "SELECT bytes FROM hlorank_reporters WHERE reporter = $1";
    let row = transaction.query_opt(some, &[&name_of(reporter)]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs())
}

/// The records that are kept of some keys.
async fn kept(
    transaction: &Transaction<'_>,
    report: &[Record],
) -> Result<HashMap<Vec<u8>, Vec<u8>>, Error> {
    let keys: Vec<&[u8]> = report.iter().map(|(key, _)| key.as_slice()).collect();
    let some = "SELECT key, record FROM hlorank_measurements WHERE key = ANY($1)";
    let rows = transaction.query(some, &[&keys]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

async fn has_graph(transaction: &Transaction<'_>, subject: &Subject) -> Result<bool, Error> {
    let found = "SELECT FROM hlorank_graphs WHERE key = $1";
    let row = transaction.query_opt(found, &[&subject.prefix()]).await?;
    Ok(row.is_some())
}

async fn insert(
    transaction: &Transaction<'_>,
    new: &Records<'_>,
    reporter: &Reporter,
) -> Result<(), Error> {
    let (keys, records): (Vec<&[u8]>, Vec<&[u8]>) = new.iter().unzip();
    let insert = "INSERT INTO hlorank_measurements (key, record, reporter)
        SELECT key, record, $3::bytea FROM unnest($1::bytea[], $2::bytea[]) AS new (key, record)";
    let values: [&(dyn ToSql + Sync); 3] = [&keys, &records, &name_of(reporter)];
    transaction.execute(insert, &values).await.map(drop)
}

async fn insert_graph(
    transaction: &Transaction<'_>,
    subject: &Subject,
    graph: &KeptGraph,
) -> Result<(), Error> {
    let key = subject.prefix();
    let kind = graph.kind().record();
    let structure = subject.structure_key(graph.structure);
    let message = &graph.message;
    let bytes = i64::try_from(graph.bytes_for(subject)).unwrap_or(i64::MAX);
    let reporter = name_of(&graph.reporter);
    let insert = "INSERT INTO hlorank_graphs (key, kind, structure, message, bytes, reporter)
        VALUES ($1, $2, $3, $4, $5, $6)";
    let values: [&(dyn ToSql + Sync); 6] = [&key, &kind, &structure, message, &bytes, &reporter];
    transaction.execute(insert, &values).await.map(drop)
}

/// Deletes the first of the chosen measurements, and then the first graphs that have none. Returns how many.
async fn delete_some(client: &mut Client, chosen: &Chosen) -> Result<[i64; 2], Error> {
    let start = &chosen.prefix();
    let end = end_of_prefix(start);
    let some = number(DELETED_AT_ONCE);
    let reporter = chosen.reporter.as_ref().map(name_of);
    let transaction = client.transaction().await?;
    let mut totals = Totals::lock(&transaction).await?;
    let values: [&(dyn ToSql + Sync); 4] = [start, &end, &some, &reporter];
    let measurements = totals
        .delete(&transaction, DELETE_MEASUREMENTS, &values)
        .await?;
    totals.measurements -= measurements;
    let mut graphs = 0;
    // A graph is deleted only once all of its measurements are.
    if measurements < some {
        graphs = totals
            .delete(&transaction, DELETE_GRAPHS, &values[..3])
            .await?;
    }
    totals.write(&transaction).await?;
    notify(&transaction, "").await?;
    transaction.commit().await?;
    Ok([measurements, graphs])
}

impl Totals {
    /// Runs a statement that deletes, and subtracts the bytes of what it deleted. Returns how many
    /// there were.
    async fn delete(
        &mut self,
        transaction: &Transaction<'_>,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<i64, Error> {
        let mut deleted = 0;
        // A row for each reporter.
        for row in transaction.query(statement, values).await? {
            let reporter: &[u8] = row.get(0);
            let count: i64 = row.get(1);
            let bytes: i64 = row.get(2);
            transaction
                .execute(SUBTRACT_FROM_REPORTER, &[&reporter, &bytes])
                .await?;
            self.bytes -= bytes;
            deleted += count;
        }
        transaction.execute(DELETE_REPORTERS, &[]).await?;
        Ok(deleted)
    }
}

/// Notifies all servers once the transaction is committed.
async fn notify(transaction: &Transaction<'_>, note: &str) -> Result<(), Error> {
    transaction
        .execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &note])
        .await
        .map(drop)
}
