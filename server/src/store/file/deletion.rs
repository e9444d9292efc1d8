//! Deletions from the file, one commit at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use redb::{Database, ReadableTable as _};

use super::tables::{MAX_SCANNED, Tables, unreadable};
use crate::store::{Chosen, Reporter, Subject};

/// What one commit deleted.
pub(super) struct Deleted {
    pub(super) measurements: u64,
    /// The key after which the next commit goes on; `None` if nothing is left.
    pub(super) next: Option<Vec<u8>>,
}

/// Maximum number of measurements that one commit deletes.
const DELETED_AT_ONCE: usize = 10_000;

/// Deletes the first of the chosen measurements after a key, and the graphs that have none left.
pub(super) fn delete_some(
    database: &Database,
    chosen: &Chosen,
    after: Option<&[u8]>,
) -> Result<Deleted, redb::Error> {
    let write = database.begin_write()?;
    let mut tables = Tables::open(&write)?;
    let (keys, next) = chosen_keys(&tables, chosen, after)?;
    let mut subjects = BTreeSet::new();
    let mut freed = BTreeMap::<Reporter, u64>::new();
    for key in &keys {
        let (subject, _) = Subject::of_key(key).ok_or_else(unreadable)?;
        let removed = tables.remove(&subject, key)?;
        *freed.entry(removed.reporter).or_default() += removed.bytes;
        subjects.insert(subject);
    }
    // The graphs in the same transaction, so that none is kept without measurements after a crash.
    for subject in &subjects {
        if !tables.has_measurements(subject)?
            && let Some(removed) = tables.remove_graph(subject)?
        {
            *freed.entry(removed.reporter).or_default() += removed.bytes;
        }
    }
    for (reporter, bytes) in freed {
        tables.count(&reporter, |held| held.saturating_sub(bytes))?;
    }
    // A transaction commits only once its tables are closed.
    drop(tables);
    write.commit()?;
    Ok(Deleted {
        measurements: keys.len() as u64,
        next,
    })
}

/// A key of a table.
type Key = Vec<u8>;

/// Returns the first of the chosen keys after a key, and the key after which there may be more.
fn chosen_keys(
    tables: &Tables<'_>,
    chosen: &Chosen,
    after: Option<&[u8]>,
) -> Result<(Vec<Key>, Option<Key>), redb::Error> {
    let mut keys = Vec::new();
    let prefix = chosen.prefix();
    let start = after.map_or(Bound::Included(prefix.as_slice()), Bound::Excluded);
    let range = tables
        .measurements
        .range::<&[u8]>((start, Bound::Unbounded))?;
    for (scanned, entry) in range.enumerate() {
        let (key, _) = entry?;
        let key = key.value();
        if !key.starts_with(&prefix) {
            break;
        }
        if chosen.has_reporter_of(key) {
            keys.push(key.to_vec());
        }
        if keys.len() == DELETED_AT_ONCE || scanned == MAX_SCANNED {
            return Ok((keys, Some(key.to_vec())));
        }
    }
    Ok((keys, None))
}
