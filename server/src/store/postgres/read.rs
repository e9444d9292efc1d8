use hlorank_graph::{Digest, Task};
use tokio_postgres::{Row, types::ToSql};

use super::{answer::within, shared::Shared};
use crate::store::{
    KeptGraph, Measurement, Page, Reporter, StoreError, Subject, chosen::ChosenKeys, graph::Kind,
    key::end_of_prefix, page::MAX_PAGE_BYTES,
};

/// Records from a key to another, as many as fit into a page, and the number of those that would do without that limit.
const PAGE: &str = "
    SELECT key, record, available FROM (
        SELECT key, record, count(*) OVER () AS available,
            sum(length(key) + length(record)) OVER (ORDER BY key) - length(key) - length(record) AS before
        FROM (
            SELECT key, record FROM hlorank_measurements
            WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) AND ($5::bytea IS NULL OR reporter = $5)
            ORDER BY key LIMIT $3
        ) AS listed
    ) AS summed
    WHERE before < $4 ORDER BY key";

const ALIKE: &str = "
    SELECT key FROM hlorank_graphs
    WHERE structure >= $1 AND ($2::bytea IS NULL OR structure < $2) AND key <> $3 ORDER BY structure LIMIT $4";

impl Shared {
    /// Reads at most `count` of the chosen measurements, from the first one after the key `after`.
    pub(in crate::store) async fn page(
        &self,
        chosen: &ChosenKeys,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Page, StoreError> {
        let prefix = chosen.prefix.as_slice();
        // The key that follows directly: no other lies between a key and the key with a zero added.
        let next = after
            .filter(|after| *after >= prefix)
            .map(|after| [after, &[0]].concat());
        let start = next.as_deref().unwrap_or(prefix);
        let end = end_of_prefix(prefix);
        // One more than asked for shows whether there are more.
        let limit = number(count.saturating_add(1));
        let bytes = number(MAX_PAGE_BYTES);
        let reporter = name_of(chosen.reporter.as_ref());
        let client = self.reader.client().await?;
        let values: [&(dyn ToSql + Sync); 5] = [&start, &end, &limit, &bytes, &reporter];
        let rows = within(client.query(PAGE, &values)).await?;
        // Another call can use the connection while the records are read.
        drop(client);
        page_of(&rows, count)
    }

    /// Returns the graph of a subject, if it is kept.
    pub(in crate::store) async fn graph(
        &self,
        subject: &Subject,
    ) -> Result<Option<KeptGraph>, StoreError> {
        let client = self.reader.client().await?;
        let key = subject.prefix();
        let some = "SELECT kind, message FROM hlorank_graphs WHERE key = $1";
        let Some(row) = within(client.query_opt(some, &[&key])).await? else {
            return Ok(None);
        };
        let kind = Kind::of_record(row.get("kind")).ok_or_else(unreadable)?;
        Ok(Some(kind.with_message(row.get("message"))))
    }

    /// Returns whether the graph of a subject is kept.
    pub(in crate::store) async fn has_graph(&self, subject: &Subject) -> Result<bool, StoreError> {
        let client = self.reader.client().await?;
        let key = subject.prefix();
        let some = "SELECT FROM hlorank_graphs WHERE key = $1";
        Ok(within(client.query_opt(some, &[&key])).await?.is_some())
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
    pub(in crate::store) async fn subjects(
        &self,
        after: Option<&Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        let client = self.reader.client().await?;
        // The empty key is before all others.
        let after = after.map(Subject::prefix).unwrap_or_default();
        let some = "SELECT key, kind FROM hlorank_graphs WHERE key > $1 ORDER BY key LIMIT $2";
        let rows = within(client.query(some, &[&after, &number(count)])).await?;
        rows.iter()
            .map(|row| kept_subject(row).ok_or_else(unreadable))
            .collect()
    }

    /// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
    /// hashes.
    pub(in crate::store) async fn alike(
        &self,
        subject: &Subject,
        structure: Digest,
        count: usize,
    ) -> Result<Vec<Subject>, StoreError> {
        let client = self.reader.client().await?;
        let prefix = subject.structure_prefix(structure);
        let end = end_of_prefix(&prefix);
        let own = subject.prefix();
        let rows = within(client.query(ALIKE, &[&prefix, &end, &own, &number(count)])).await?;
        rows.iter()
            .map(|row| Subject::of_prefix(row.get("key")).ok_or_else(unreadable))
            .collect()
    }
}

/// Makes a page of at most `count` measurements of the rows of [`PAGE`].
fn page_of(rows: &[Row], count: usize) -> Result<Page, StoreError> {
    let some = &rows[..rows.len().min(count)];
    // The same in every row. It also counts rows that are left out because the page is full.
    let available = rows.first().map_or(0, |row| row.get::<_, i64>("available"));
    let has_more = available > number(some.len());
    let measurements = some
        .iter()
        .map(|row| measurement(row).ok_or_else(unreadable));
    Ok(Page {
        measurements: measurements.collect::<Result<_, _>>()?,
        next: some.last().filter(|_| has_more).map(|row| row.get("key")),
    })
}

fn kept_subject(row: &Row) -> Option<(Subject, Task)> {
    let kind = Kind::of_record(row.get("kind"))?;
    Some((Subject::of_prefix(row.get("key"))?, kind.task))
}

fn measurement(row: &Row) -> Option<(Subject, Measurement)> {
    Measurement::read(row.get("key"), row.get("record"))
}

fn unreadable() -> StoreError {
    StoreError::Failed("a record of the database is unreadable".to_owned())
}

/// The name of a reporter as the database takes it.
pub(super) fn name_of(reporter: Option<&Reporter>) -> Option<&[u8]> {
    reporter.map(|reporter| reporter.name().as_bytes())
}

/// A number as the database takes it.
pub(super) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
