use bytes::Bytes;
use hlorank_graph::EncodedBatch;
use hlorank_proto::{received::Adapt, v1::MeasurementFailure};

use crate::{refusal::refusals, store::Outcome};

/// Measured run times as a client sent them, checked but for their configurations.
pub(crate) struct SentMeasurements {
    /// The client's name for what they were measured on.
    pub(crate) target: String,
    /// The measured configurations; `None` if there are none.
    pub(crate) batch: Option<EncodedBatch>,
    /// `[configurations]` what came of each.
    pub(crate) outcomes: Vec<Outcome>,
    /// `[configurations]` the id of each.
    pub(crate) ids: Vec<Vec<u8>>,
}

/// A message that holds measurements: the names of its fields, and how many measurements it may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MeasurementFields {
    pub(crate) target: &'static str,
    pub(crate) batch: &'static str,
    pub(crate) seconds: &'static str,
    pub(crate) repeats: &'static str,
    pub(crate) failures: &'static str,
    pub(crate) ids: &'static str,
    /// Maximum number of measurements.
    limit: usize,
    /// What to do about more.
    hint: &'static str,
}

refusals! {
    /// The reason why measurements were refused.
    #[derive(Clone, Debug, PartialEq, thiserror::Error)]
    pub enum MeasurementError {
        #[error("{field} has {found} measured configurations, at most {limit} are accepted; {hint}")]
        TooMany { field: &'static str, found: usize, limit: usize, hint: &'static str }
            => TOO_MANY_MEASUREMENTS.at(field).found(found).allowed(limit),
        #[error("{field} has {found} values for {expected} measured configurations; send one for each")]
        WrongCount { field: &'static str, found: usize, expected: usize } => WRONG_COUNT.at(field),
        #[error("{field}[{index}] is {found}, expected {expected}")]
        OutOfRange { field: &'static str, index: usize, found: String, expected: &'static str } => VALUE_OUT_OF_RANGE.at(field),
    }
}

/// `Adapt`.
pub(crate) const ADAPT: MeasurementFields = MeasurementFields {
    target: "adapt.target",
    batch: "adapt.batch",
    seconds: "adapt.seconds",
    repeats: "adapt.repeats",
    failures: "adapt.failures",
    ids: "adapt.ids",
    limit: MAX_LEARNED,
    hint: "send those that you trust most",
};

/// `ReportMeasurementsRequest`.
pub(crate) const REPORT: MeasurementFields = MeasurementFields {
    target: "target",
    batch: "batch",
    seconds: "seconds",
    repeats: "repeats",
    failures: "failures",
    ids: "ids",
    limit: MAX_REPORT,
    hint: "send several reports",
};

/// Maximum number of measurements of a report.
pub(crate) const MAX_REPORT: usize = 10_000;

/// Maximum number of measurements of a graph on a target that a call learns from, of those that it sends and of stored ones.
pub(crate) const MAX_LEARNED: usize = 2_000;

/// The shortest and the longest run time, in seconds.
const SECONDS: [f64; 2] = [1e-12, 1e9];

/// Maximum number of runs of one measurement.
const MAX_REPEATS: u32 = 1_000_000;

/// The last second of the year 9999. A date of four digits has no later one.
const MAX_TIME: u64 = 253_402_300_799;

/// Maximum length of an id.
const MAX_ID_BYTES: usize = 64;

impl SentMeasurements {
    /// Checks the measurements of a batch. `sent` says what came of each; the lists of other messages have the form of
    /// `Adapt`, too.
    pub(crate) fn new(
        fields: &MeasurementFields,
        batch: Option<EncodedBatch>,
        sent: Adapt,
    ) -> Result<Self, MeasurementError> {
        let count = batch.as_ref().map_or(0, EncodedBatch::count);
        // The number first: it bounds the work of all other checks.
        if count > fields.limit {
            return Err(MeasurementError::TooMany {
                field: fields.batch,
                found: count,
                limit: fields.limit,
                hint: fields.hint,
            });
        }
        let outcomes = outcomes(fields, &sent, count)?;
        // After the outcomes, because ids that the client left out are made of them.
        let ids = ids(fields, &sent.ids, &outcomes)?;
        Ok(Self {
            target: sent.target,
            batch,
            outcomes,
            ids,
        })
    }
}

/// Returns what came of each of `count` configurations.
fn outcomes(
    fields: &MeasurementFields,
    sent: &Adapt,
    count: usize,
) -> Result<Vec<Outcome>, MeasurementError> {
    check_count(fields.seconds, sent.seconds.len(), count)?;
    // An empty list stands for 1 run each, or for no failures.
    if !sent.repeats.is_empty() {
        check_count(fields.repeats, sent.repeats.len(), count)?;
    }
    if !sent.failures.is_empty() {
        check_count(fields.failures, sent.failures.len(), count)?;
    }
    let outcome = |index| {
        let seconds = sent.seconds[index];
        let failure = sent.failures.get(index).copied().unwrap_or_default();
        let repeats = sent.repeats.get(index).copied().unwrap_or(1);
        if MeasurementFailure::try_from(failure).is_err() {
            let expected = "a MeasurementFailure";
            return out_of_range(fields.failures, index, failure.to_string(), expected);
        }
        let [shortest, longest] = SECONDS;
        let (is_possible, expected) = match failure {
            0 => (
                (shortest..=longest).contains(&seconds),
                "from 1e-12 to 1e9, or 0 and a failure",
            ),
            _ => (seconds == 0.0, "0, because the configuration failed"),
        };
        if !is_possible {
            return out_of_range(fields.seconds, index, seconds.to_string(), expected);
        }
        if !(1..=MAX_REPEATS).contains(&repeats) {
            let expected = "from 1 to 1000000";
            return out_of_range(fields.repeats, index, repeats.to_string(), expected);
        }
        Ok(Outcome {
            // Not −0, which has other bits.
            seconds: seconds.abs(),
            repeats,
            failure,
        })
    };
    (0..count).map(outcome).collect()
}

/// Returns the id of each measurement. Ids that were not sent are made of outcomes.
fn ids(
    fields: &MeasurementFields,
    sent: &[Bytes],
    outcomes: &[Outcome],
) -> Result<Vec<Vec<u8>>, MeasurementError> {
    if sent.is_empty() {
        return Ok(outcomes.iter().map(Outcome::id).collect());
    }
    check_count(fields.ids, sent.len(), outcomes.len())?;
    let is_refused = |id: &Bytes| !(1..=MAX_ID_BYTES).contains(&id.len());
    if let Some(index) = sent.iter().position(is_refused) {
        let found = format!("{} bytes long", sent[index].len());
        return out_of_range(fields.ids, index, found, "1 to 64 bytes");
    }
    Ok(sent.iter().map(|id| id.to_vec()).collect())
}

/// Returns when each of `count` measurements was reported: now, unless times were sent.
pub(crate) fn reported_at(
    sent: Vec<u64>,
    count: usize,
    now: u64,
) -> Result<Vec<u64>, MeasurementError> {
    const FIELD: &str = "reported_at";
    if sent.is_empty() {
        return Ok(vec![now; count]);
    }
    check_count(FIELD, sent.len(), count)?;
    if let Some(index) = sent.iter().position(|&time| time > MAX_TIME) {
        let expected = "seconds since 1970, before the year 10000";
        return out_of_range(FIELD, index, sent[index].to_string(), expected);
    }
    Ok(sent)
}

fn check_count(field: &'static str, found: usize, expected: usize) -> Result<(), MeasurementError> {
    if found == expected {
        return Ok(());
    }
    Err(MeasurementError::WrongCount {
        field,
        found,
        expected,
    })
}

fn out_of_range<T>(
    field: &'static str,
    index: usize,
    found: String,
    expected: &'static str,
) -> Result<T, MeasurementError> {
    Err(MeasurementError::OutOfRange {
        field,
        index,
        found,
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_1_and_nothing_failed_by_default() {
        let outcome = |seconds, failure| Outcome {
            seconds,
            repeats: 1,
            failure,
        };
        let ran = Adapt {
            seconds: vec![1.0, 2.0],
            ..Adapt::default()
        };
        let failed = Adapt {
            seconds: vec![1.0, 0.0],
            failures: vec![0, 2],
            ..Adapt::default()
        };
        assert_eq!(
            outcomes(&ADAPT, &ran, 2).unwrap(),
            [outcome(1.0, 0), outcome(2.0, 0)]
        );
        assert_eq!(
            outcomes(&ADAPT, &failed, 2).unwrap(),
            [outcome(1.0, 0), outcome(0.0, 2)]
        );
    }

    #[test]
    fn measurements_are_reported_now_unless_times_are_sent() {
        assert_eq!(reported_at(vec![], 2, 7).unwrap(), [7, 7]);
        assert_eq!(reported_at(vec![0, MAX_TIME], 2, 7).unwrap(), [0, MAX_TIME]);
        let refused = |sent| reported_at(sent, 2, 7).unwrap_err().to_string();
        assert!(refused(vec![1]).contains("reported_at has 1 values for 2"));
        assert!(refused(vec![1, MAX_TIME + 1]).contains("reported_at[1] is 253402300800"));
    }

    #[test]
    fn ids_are_given_or_made_of_outcomes() {
        let outcomes = [Outcome {
            seconds: 1.0,
            repeats: 1,
            failure: 0,
        }; 2];
        let ids = |ids: &[&'static [u8]]| {
            let sent: Vec<Bytes> = ids.iter().map(|id| Bytes::from_static(id)).collect();
            super::ids(&REPORT, &sent, &outcomes)
        };
        assert_eq!(ids(&[b"a", b"b"]).unwrap(), [b"a", b"b"]);
        assert_eq!(ids(&[]).unwrap(), [outcomes[0].id(), outcomes[0].id()]);
        let refused = ids(&[b"a", b""]).unwrap_err().to_string();
        assert!(refused.contains("ids[1] is 0 bytes long"), "{refused}");
    }
}
