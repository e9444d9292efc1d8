use hlorank_graph::{Digest, Task};
use tokio_postgres::Row;

use super::{answer::within, shared::Shared};
use crate::store::{
    KeptGraph, Measurement, Page, StoreError, Subject, chosen::ChosenKeys, graph::Kind,
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
        ChosenKeys {
            prefix, reporter, ..
        }: &ChosenKeys,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Page, StoreError> {
        // The key that follows directly.
        let next = after
            .filter(|after| *after >= prefix.as_slice())
            .map(|after| [after, &[0]].concat());
        let start = next.as_deref().unwrap_or(prefix);
        let reporter = reporter.as_ref().map(|reporter| reporter.name().as_bytes());
        let (end, one_more) = (end_of_prefix(prefix), number(count.saturating_add(1)));
        let client = self.reader.client().await?;
        let most = number(MAX_PAGE_BYTES);
        let rows = within(client.query(PAGE, &[&start, &end, &one_more, &most, &reporter])).await?;
        drop(client);
        let mut page = Page::default();
        let some = &rows[..rows.len().min(count)];
        for row in some {
            page.measurements
                .push(measurement(row).ok_or_else(unreadable)?);
        }
        let available = rows.first().map_or(0, |row| row.get::<_, i64>("available"));
        let has_more = available > number(some.len());
        page.next = some.last().filter(|_| has_more).map(|row| row.get("key"));
        Ok(page)
    }

    /// Returns the graph of a subject, if it is kept.
    pub(in crate::store) async fn graph(
        &self,
        subject: &Subject,
    ) -> Result<Option<KeptGraph>, StoreError> {
        let (client, key) = (self.reader.client().await?, subject.prefix());
        let some = "SELECT kind, message FROM hlorank_graphs WHERE key = $1";
        let Some(row) = within(client.query_opt(some, &[&key])).await? else {
            return Ok(None);
        };
        let Kind {
            task,
            structure,
            reporter,
        } = Kind::of_record(row.get("kind")).ok_or_else(unreadable)?;
        Ok(Some(KeptGraph {
            task,
            structure,
            message: row.get("message"),
            reporter,
        }))
    }

    /// Returns whether the graph of a subject is kept.
    pub(in crate::store) async fn has_graph(&self, subject: &Subject) -> Result<bool, StoreError> {
        let (client, key) = (self.reader.client().await?, subject.prefix());
        let some = "SELECT FROM hlorank_graphs WHERE key = $1";
        Ok(within(client.query_opt(some, &[&key])).await?.is_some())
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
    pub(in crate::store) async fn subjects(
        &self,
        after: Option<&Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        let (client, after) = (
            self.reader.client().await?,
            after.map(Subject::prefix).unwrap_or_default(),
        );
        let some = "SELECT key, kind FROM hlorank_graphs WHERE key > $1 ORDER BY key LIMIT $2";
        let rows = within(client.query(some, &[&after, &number(count)])).await?;
        let subject = |row: &Row| {
            let kind = Kind::of_record(row.get("kind"))?;
            Some((Subject::of_prefix(row.get("key"))?, kind.task))
        };
        rows.iter()
            .map(|row| subject(row).ok_or_else(unreadable))
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
        let (client, prefix) = (
            self.reader.client().await?,
            subject.structure_prefix(structure),
        );
        let end = end_of_prefix(&prefix);
        let rows = within(client.query(ALIKE, &[&prefix, &end, &subject.prefix(), &number(count)]))
            .await?;
        rows.iter()
            .map(|row| Subject::of_prefix(row.get("key")).ok_or_else(unreadable))
            .collect()
    }
}

fn measurement(row: &Row) -> Option<(Subject, Measurement)> {
    Measurement::read(row.get("key"), row.get("record"))
}

fn unreadable() -> StoreError {
    StoreError::Failed("a record of the database is unreadable".to_owned())
}

/// A number as the database takes it.
pub(super) fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
