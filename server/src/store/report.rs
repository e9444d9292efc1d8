use std::collections::BTreeMap;

use super::{Measurement, Reported, Reporter, StoreError, Subject};

/// A key and its record.
pub(super) type Record = (Vec<u8>, Vec<u8>);

/// New records by key.
pub(super) type Records<'a> = BTreeMap<&'a [u8], &'a [u8]>;

/// The records of measurements of a graph on a target.
pub(super) fn records(subject: &Subject, measurements: &[Measurement]) -> Vec<Record> {
    measurements
        .iter()
        .map(|each| (each.key(subject), each.record()))
        .collect()
}

/// Returns those records of a report that are not kept. `is_kept_as` says whether a key is kept, and if so, whether with this
/// record.
pub(super) fn new_records<E>(
    report: &[Record],
    mut is_kept_as: impl FnMut(&[u8], &[u8]) -> Result<Option<bool>, E>,
) -> Result<Result<Records<'_>, StoreError>, E> {
    // A report may have a measurement twice, so a record is also compared with the new ones before
    // it.
    let mut new = Records::new();
    for (index, (key, record)) in report.iter().enumerate() {
        let is_same = match is_kept_as(key, record)? {
            Some(is_same) => is_same,
            None => *new.entry(key).or_insert(record) == record,
        };
        if !is_same {
            return Ok(Err(StoreError::Changed { index }));
        }
    }
    Ok(Ok(new))
}

/// Returns how many records of a report are new, and how many are kept already.
pub(super) fn counts(report: &[Record], new: &Records<'_>) -> Reported {
    let accepted = new.len() as u64;
    Reported {
        accepted,
        known: report.len() as u64 - accepted,
    }
}

/// Bytes of records, of their keys and of the keys by reporter.
pub(super) fn bytes_of(records: &Records<'_>) -> u64 {
    let bytes = |(key, record): (&&[u8], &&[u8])| bytes_of_record(key, record);
    records.iter().map(bytes).sum()
}

/// Bytes that a record takes.
pub(super) fn bytes_of_record(key: &[u8], record: &[u8]) -> u64 {
    (2 * key.len() + record.len()) as u64
}

/// How much of the store is taken before a report.
pub(super) struct Room<'a> {
    /// Maximum number of bytes.
    pub(super) limit: u64,
    /// Bytes that are held.
    pub(super) held: u64,
    /// Who reports.
    pub(super) reporter: &'a Reporter,
    /// Bytes that its earlier reports hold.
    pub(super) of_reporter: u64,
}

/// One client may hold at most this many times the bytes that remain free. Alone it can hold three quarters of the store;
/// several clients together always leave some to others.
const MAX_CLIENT_TIMES_FREE: u64 = 3;

impl Room<'_> {
    /// Checks that this many more bytes fit into the store and into the share of the reporter.
    pub(super) fn check(&self, needed: u64) -> Result<(), StoreError> {
        let &Self { limit, held, .. } = self;
        let sum = held.checked_add(needed);
        let Some(free) = sum.and_then(|sum| limit.checked_sub(sum)) else {
            return Err(StoreError::Full {
                held,
                needed,
                limit,
            });
        };
        // What remains free after the report decides the share, so it shrinks while the store fills
        // up.
        let found = self.of_reporter.saturating_add(needed);
        let allowed = free.saturating_mul(MAX_CLIENT_TIMES_FREE);
        if found <= allowed {
            return Ok(());
        }
        Err(StoreError::ShareFull {
            reporter: self.reporter.name().to_owned(),
            found,
            allowed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(held: u64, of_reporter: u64, needed: u64) -> Result<(), StoreError> {
        let reporter = Reporter::named("ci").unwrap();
        Room {
            limit: 1_000,
            held,
            reporter: &reporter,
            of_reporter,
        }
        .check(needed)
    }

    #[test]
    fn a_client_leaves_a_quarter_to_others() {
        assert_eq!(check(700, 700, 50), Ok(()));
        let refused = StoreError::ShareFull {
            reporter: "ci".to_owned(),
            found: 751,
            allowed: 747,
        };
        assert_eq!(check(700, 700, 51), Err(refused));
        assert_eq!(check(750, 0, 180), Ok(()), "another has room");
        assert_eq!(
            check(950, 0, 51),
            Err(StoreError::Full {
                held: 950,
                needed: 51,
                limit: 1_000
            })
        );
    }
}
