use std::collections::BTreeMap;

use super::{Measurement, Reported, StoreError, Subject};

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

/// Bytes of records.
pub(super) fn bytes_of(records: &Records<'_>) -> u64 {
    records
        .iter()
        .map(|(key, record)| (key.len() + record.len()) as u64)
        .sum()
}
