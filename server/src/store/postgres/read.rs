use hlorank_graph::{Digest, Task};
use tokio_postgres::{Row, types::ToSql};

use super::{PostgresStore, link::within};
use crate::store::{
    GraphKind, KeptGraph, Measurement, MeasurementFilter, Page, Reporter, StoreError, Subject,
    key::{DIGEST_BYTES, end_of_prefix, time_key},
    measurement::MAX_PAGE_BYTES,
};

/// The first keys of some reporter (of all if it is null): that of every configuration, then the second of every configuration
/// that has one, and so on. Configurations are looked up one by one, so that the measurements between them are not read. As
/// each of the others has a key, none has more than the limit without them.
const DRAW: &str = "
    WITH RECURSIVE firsts AS (
        (SELECT key FROM hlorank_measurements WHERE key >= $1 AND key < $2 {by} ORDER BY key LIMIT 1)
        UNION ALL
        SELECT (
            SELECT key FROM hlorank_measurements
            WHERE key > substring(firsts.key FOR $3) || $4::bytea AND key < $2 {by} ORDER BY key LIMIT 1
        ) FROM firsts WHERE firsts.key IS NOT NULL
    ),
    configurations AS (SELECT key FROM firsts WHERE key IS NOT NULL LIMIT $5)
    SELECT key FROM (
        SELECT same.key, row_number() OVER (PARTITION BY configurations.key ORDER BY same.key) AS turn
        FROM configurations CROSS JOIN LATERAL (
            SELECT key FROM hlorank_measurements
            WHERE key >= configurations.key AND key <= substring(configurations.key FOR $3) || $4::bytea {by}
            ORDER BY key LIMIT $5 - (SELECT count(*) FROM configurations) + 1
        ) AS same
    ) AS drawn ORDER BY turn, key LIMIT $5";

/// More than what follows the configuration in any key: an id and the tag of a reporter.
const LAST: [u8; 96] = [u8::MAX; 96];

/// The digests of the configurations of the keys of a range.
const MEASURED: &str = "
    SELECT DISTINCT substring(key FROM $3 FOR 32) FROM hlorank_measurements
    WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2)";

/// Records of the first of some keys, as many as fit into a page.
const RECORDS: &str = "
    SELECT place, key, record FROM (
        SELECT place, key, record, sum(length(key) + length(record)) OVER (ORDER BY place) - length(key) - length(record) AS before
        FROM unnest($1::bytea[]) WITH ORDINALITY AS drawn (key, place) JOIN hlorank_measurements USING (key)
    ) AS summed
    WHERE before < $2 ORDER BY place";

/// Records from a key to another, as many as fit into a page, and the number of those that would do without that limit.
const PAGE: &str = "
    SELECT key, record, available FROM (
        SELECT key, record, count(*) OVER () AS available,
            sum(length(key) + length(record)) OVER (ORDER BY key) - length(key) - length(record) AS before
        FROM (
            SELECT key, record FROM hlorank_measurements
            WHERE key >= $1 AND ($2::bytea IS NULL OR key < $2) AND ($5::bytea IS NULL OR reporter = $5)
                AND ($6::bytea IS NULL OR substring(record FOR 8) < $6)
            ORDER BY key LIMIT $3
        ) AS listed
    ) AS summed
    WHERE before < $4 ORDER BY key";

const ALIKE: &str = "
    SELECT key FROM hlorank_graphs
    WHERE structure >= $1 AND ($2::bytea IS NULL OR structure < $2) AND key <> $3 ORDER BY structure LIMIT $4";

/// The values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

impl PostgresStore {
    /// Returns the rows of a query. Another call can use the connection while they are read.
    async fn rows(&self, query: &str, values: Values<'_>) -> Result<Vec<Row>, StoreError> {
        let client = self.reader.client().await?;
        Ok(within(client.query(query, values)).await?)
    }

    /// Reads at most `count` of the chosen measurements, from the first one after the key `after`.
    pub(crate) async fn page(
        &self,
        chosen: &MeasurementFilter,
        after: Option<&[u8]>,
        count: usize,
    ) -> Result<Page, StoreError> {
        let prefix = chosen.prefix();
        let prefix = prefix.as_slice();
        // The key that follows directly: no other lies between a key and the key with a zero added.
        let next = after
            .filter(|after| *after >= prefix)
            .map(|after| [after, &[0]].concat());
        let start = next.as_deref().unwrap_or(prefix);
        let end = end_of_prefix(prefix);
        // One more than asked for shows whether there are more.
        let limit = number(count.saturating_add(1));
        let bytes = number(MAX_PAGE_BYTES);
        let reporter = chosen.reporter.as_ref().map(name_of);
        let before = chosen.reported_before.map(time_key);
        let before = before.as_ref().map(|time| &time[..]);
        let values: Values<'_> = &[&start, &end, &limit, &bytes, &reporter, &before];
        let rows = self.rows(PAGE, values).await?;
        let (some, last) = page_of(&rows, count);
        Ok(Page {
            measurements: some.iter().map(measurement).collect::<Result<_, _>>()?,
            next: last.map(|row| row.get("key")),
        })
    }

    /// Draws the keys of at most `count` measurements of a graph, of all reporters or of one.
    pub(crate) async fn draw(
        &self,
        subject: &Subject,
        reporter: Option<&Reporter>,
        count: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let prefix = subject.prefix();
        let end = end_of_prefix(&prefix);
        let of_config = i32::try_from(prefix.len() + DIGEST_BYTES).unwrap_or(i32::MAX);
        let (last, limit) = (&LAST[..], number(count));
        let name = reporter.map(name_of);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&prefix, &end, &of_config, &last, &limit];
        // The index by reporter is used only by a statement that always names one.
        let by = reporter.map_or("", |_| "AND reporter = $6");
        if reporter.is_some() {
            values.push(&name);
        }
        let rows = self.rows(&DRAW.replace("{by}", by), &values).await?;
        Ok(rows.iter().map(|row| row.get("key")).collect())
    }

    /// Reads the measurements of the first of some keys, as many as fit a page. Returns also the number of these keys.
    pub(crate) async fn measurements(
        &self,
        keys: &[Vec<u8>],
    ) -> Result<(Vec<Measurement>, usize), StoreError> {
        let bytes = number(MAX_PAGE_BYTES);
        let rows = self.rows(RECORDS, &[&keys, &bytes]).await?;
        let read = rows.iter().map(|row| Ok(measurement(row)?.1));
        let measurements: Result<Vec<Measurement>, StoreError> = read.collect();
        // If nothing was found, then all of them were deleted meanwhile.
        let place = rows.last().map(|row| row.get::<_, i64>("place"));
        let keys = place
            .and_then(|place| usize::try_from(place).ok())
            .unwrap_or(keys.len());
        Ok((measurements?, keys))
    }

    /// Returns the digests of the configurations that have measurements of a graph.
    pub(crate) async fn measured(&self, subject: &Subject) -> Result<Vec<Digest>, StoreError> {
        let prefix = subject.prefix();
        let end = end_of_prefix(&prefix);
        let start = i32::try_from(prefix.len() + 1).unwrap_or(i32::MAX);
        let rows = self.rows(MEASURED, &[&prefix, &end, &start]).await?;
        let config = |row: &Row| row.get::<_, &[u8]>(0).try_into().ok().map(Digest);
        rows.iter()
            .map(|row| config(row).ok_or_else(unreadable))
            .collect()
    }

    /// Returns the graph of a subject, if it is kept.
    pub(crate) async fn graph(&self, subject: &Subject) -> Result<Option<KeptGraph>, StoreError> {
        let some = "SELECT kind, message FROM hlorank_graphs WHERE key = $1";
        let rows = self.rows(some, &[&subject.prefix()]).await?;
        let graph = rows.first().map(|row| {
            Ok(KeptGraph {
                kind: GraphKind::of_record(row.get("kind")).ok_or_else(unreadable)?,
                message: row.get("message"),
            })
        });
        graph.transpose()
    }

    /// Returns whether the graph of a subject is kept.
    pub(crate) async fn has_graph(&self, subject: &Subject) -> Result<bool, StoreError> {
        let some = "SELECT FROM hlorank_graphs WHERE key = $1";
        let rows = self.rows(some, &[&subject.prefix()]).await?;
        Ok(!rows.is_empty())
    }

    /// Returns at most `count` subjects whose graphs are kept and their tasks, from the first one after `after`.
    pub(crate) async fn subjects(
        &self,
        after: Option<&Subject>,
        count: usize,
    ) -> Result<Vec<(Subject, Task)>, StoreError> {
        // The empty key is before all others.
        let after = after.map(Subject::prefix).unwrap_or_default();
        let some = "SELECT key, kind FROM hlorank_graphs WHERE key > $1 ORDER BY key LIMIT $2";
        let rows = self.rows(some, &[&after, &number(count)]).await?;
        let subject = |row: &Row| {
            let kind = GraphKind::of_record(row.get("kind"))?;
            Some((Subject::of_prefix(row.get("key"))?, kind.task))
        };
        rows.iter()
            .map(|row| subject(row).ok_or_else(unreadable))
            .collect()
    }

    /// Returns at most `count` other subjects on the target of one whose graphs have this structure: those with the lowest
    /// hashes.
    pub(crate) async fn alike(
        &self,
        subject: &Subject,
        structure: Digest,
        count: usize,
    ) -> Result<Vec<Subject>, StoreError> {
        let prefix = subject.structure_prefix(structure);
        let end = end_of_prefix(&prefix);
        let own = subject.prefix();
        let values: Values<'_> = &[&prefix, &end, &own, &number(count)];
        let rows = self.rows(ALIKE, values).await?;
        rows.iter()
            .map(|row| Subject::of_prefix(row.get("key")).ok_or_else(unreadable))
            .collect()
    }
}

fn measurement(row: &Row) -> Result<(Subject, Measurement), StoreError> {
    Measurement::read(row.get("key"), row.get("record")).ok_or_else(unreadable)
}

/// The first `count` rows of a page, and the last of them if there are more behind it.
pub(super) fn page_of(rows: &[Row], count: usize) -> (&[Row], Option<&Row>) {
    let some = &rows[..rows.len().min(count)];
    // The same in every row. It also counts rows that are left out because the page is full.
    let available = rows.first().map_or(0, |row| row.get::<_, i64>("available"));
    (some, some.last().filter(|_| available > number(some.len())))
}

pub(super) fn unreadable() -> StoreError {
    StoreError::Failed("a record of the database is unreadable".to_owned())
}

/// The name of a reporter as the database takes it.
pub(super) fn name_of(reporter: &Reporter) -> &[u8] {
    reporter.name().as_bytes()
}

/// A number as the database takes it.
pub(super) fn number(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
