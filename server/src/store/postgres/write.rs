use std::collections::HashMap;

use tokio_postgres::{Client, Error, Transaction};

use super::{
    CHANNEL, PostgresStore,
    link::{LinkError, Totals, within},
    note_of,
    read::{Values, name_of, number},
};
use crate::store::{
    Measurement, MeasurementFilter, ReportOutcome, Reporter, StoreError,
    key::{end_of_prefix, time_key},
    report::{Additions, Report, Room},
};

/// Maximum number of measurements, and of graphs, that one transaction deletes.
const DELETED_AT_ONCE: usize = 10_000;

/// Deletes some measurements of a range, of one reporter and before a time if these are given. Returns the number and bytes of
/// each reporter.
const DELETE_MEASUREMENTS: &str = "
    WITH gone AS (
        DELETE FROM hlorank_measurements WHERE key IN (
            SELECT key FROM hlorank_measurements
            WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) AND ($4::bytea IS NULL OR reporter = $4)
                AND ($5::bytea IS NULL OR substring(record FOR 8) < $5)
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

const INSERT: &str = "
    INSERT INTO hlorank_measurements (key, record, reporter)
    SELECT key, record, $3::bytea FROM unnest($1::bytea[], $2::bytea[]) AS new (key, record)";

const INSERT_GRAPH: &str = "
    INSERT INTO hlorank_graphs (key, kind, structure, message, bytes, reporter) VALUES ($1, $2, $3, $4, $5, $6)";

const ADD_TO_REPORTER: &str = "
    INSERT INTO hlorank_reporters VALUES ($1, $2)
    ON CONFLICT (reporter) DO UPDATE SET bytes = hlorank_reporters.bytes + excluded.bytes";

const SUBTRACT_FROM_REPORTER: &str =
    "UPDATE hlorank_reporters SET bytes = bytes - $2 WHERE reporter = $1";

const DELETE_REPORTERS: &str = "DELETE FROM hlorank_reporters WHERE bytes <= 0";

impl PostgresStore {
    /// Adds a report, and returns once it is on disk.
    pub(crate) async fn report(&self, report: &Report) -> Result<ReportOutcome, StoreError> {
        let mut client = self.writer.client().await?;
        // An answer that is late may still be a commit. A client that reports again then finds its
        // measurements known.
        let added = within(add(&mut client, report, self.limit)).await?;
        drop(client);
        self.sample().await;
        Ok(added)
    }

    /// Deletes the chosen measurements, and graphs that have none left. Returns how many measurements there were.
    pub(crate) async fn delete(&self, chosen: &MeasurementFilter) -> Result<u64, StoreError> {
        let mut client = self.writer.client().await?;
        // In several transactions, because each locks the totals, for which reports wait.
        let mut deleted = 0;
        loop {
            let [measurements, graphs] = within(delete_some(&mut client, chosen)).await?;
            deleted += measurements.unsigned_abs();
            self.series.deleted.increment(measurements.unsigned_abs());
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
async fn add(client: &mut Client, report: &Report, limit: u64) -> Result<ReportOutcome, LinkError> {
    let transaction = client.transaction().await?;
    let totals = Totals::lock(&transaction).await?;
    let subject = report.subject.prefix();
    let records = report.records.iter();
    let keys: Vec<&[u8]> = records.clone().map(|(key, _)| &key[..]).collect();
    let kept = "SELECT key, record FROM hlorank_measurements WHERE key = ANY($1)";
    let kept = transaction.query(kept, &[&keys]).await?;
    let kept: HashMap<&[u8], &[u8]> = kept.iter().map(|row| (row.get(0), row.get(1))).collect();
    let graph = "SELECT FROM hlorank_graphs WHERE key = $1";
    let graph = transaction.query_opt(graph, &[&subject]).await?;
    let room = totals.room(&transaction, &report.reporter, limit).await?;
    let is_same = |(key, record): &(Vec<u8>, Vec<u8>)| {
        let kept = kept.get(&key[..])?;
        Some(Measurement::is_same(kept, record))
    };
    let kept: Vec<Option<bool>> = records.map(is_same).collect();
    let additions = report.additions(&room, graph.is_some(), &kept)?;
    insert(&transaction, report, &additions, totals).await?;
    // A transaction that is dropped before is rolled back.
    transaction.commit().await?;
    Ok(additions.reported)
}

/// Inserts what is new, and counts it in the totals and for its reporter.
async fn insert(
    transaction: &Transaction<'_>,
    report: &Report,
    additions: &Additions<'_>,
    totals: Totals,
) -> Result<(), Error> {
    let reporter = name_of(&report.reporter);
    let (keys, records): (Vec<&[u8]>, Vec<&[u8]>) = additions.records.iter().unzip();
    let values: Values<'_> = &[&keys, &records, &reporter];
    transaction.execute(INSERT, values).await?;
    if let Some(graph) = additions.graph {
        let subject = &report.subject;
        let key = subject.prefix();
        let kind = graph.kind.record();
        let structure = subject.structure_key(graph.kind.structure);
        let bytes = number(graph.kind.bytes(subject, graph.message.len()));
        let message = &graph.message;
        let values: Values<'_> = &[
            &key,
            &kind,
            &structure,
            message,
            &bytes,
            &name_of(&graph.kind.reporter),
        ];
        transaction.execute(INSERT_GRAPH, values).await?;
    }
    let measurements = number(additions.records.len());
    totals
        .add(transaction, &report.reporter, measurements, additions.bytes)
        .await?;
    // The other servers hear of it when the transaction is committed.
    if additions.records.is_empty() {
        return Ok(());
    }
    notify(transaction, &note_of(&report.subject)).await
}

/// Deletes the first of the chosen measurements, and then the first graphs that have none. Returns how many.
async fn delete_some(
    client: &mut Client,
    chosen: &MeasurementFilter,
) -> Result<[i64; 2], LinkError> {
    let start = &chosen.prefix();
    let end = end_of_prefix(start);
    let some = number(DELETED_AT_ONCE);
    let reporter = chosen.reporter.as_ref().map(name_of);
    let transaction = client.transaction().await?;
    let mut totals = Totals::lock(&transaction).await?;
    let before = chosen.reported_before.map(time_key);
    let before = before.as_ref().map(|time| &time[..]);
    let values: Values<'_> = &[start, &end, &some, &reporter, &before];
    let measurements = totals
        .delete(&transaction, DELETE_MEASUREMENTS, values)
        .await?;
    totals.measurements -= measurements;
    let mut graphs = 0;
    // A graph is deleted only once all of its measurements are.
    if measurements < some {
        graphs = totals
            .delete(&transaction, DELETE_GRAPHS, &values[..3])
            .await?;
    }
    if measurements + graphs == 0 {
        return Ok([0, 0]);
    }
    totals.write(&transaction).await?;
    notify(&transaction, "").await?;
    transaction.commit().await?;
    Ok([measurements, graphs])
}

impl Totals {
    /// How much is taken before a reporter adds something.
    pub(super) async fn room(
        &self,
        transaction: &Transaction<'_>,
        reporter: &Reporter,
        limit: u64,
    ) -> Result<Room, Error> {
        let of_reporter = "SELECT bytes FROM hlorank_reporters WHERE reporter = $1";
        let of_reporter = transaction
            .query_opt(of_reporter, &[&name_of(reporter)])
            .await?;
        let of_reporter: i64 = of_reporter.map_or(0, |row| row.get(0));
        Ok(Room {
            limit,
            held: self.bytes.unsigned_abs(),
            of_reporter: of_reporter.unsigned_abs(),
        })
    }

    /// Counts what a reporter adds.
    pub(super) async fn add(
        self,
        transaction: &Transaction<'_>,
        reporter: &Reporter,
        measurements: i64,
        bytes: u64,
    ) -> Result<(), Error> {
        let bytes = number(bytes);
        let totals = Self {
            measurements: self.measurements + measurements,
            bytes: self.bytes + bytes,
        };
        totals.write(transaction).await?;
        // A reporter without bytes has no row, as in the file.
        if bytes > 0 {
            transaction
                .execute(ADD_TO_REPORTER, &[&name_of(reporter), &bytes])
                .await?;
        }
        Ok(())
    }

    /// Runs a statement that deletes, and subtracts the bytes of what it deleted. Returns how many
    /// there were.
    async fn delete(
        &mut self,
        transaction: &Transaction<'_>,
        statement: &str,
        values: Values<'_>,
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
