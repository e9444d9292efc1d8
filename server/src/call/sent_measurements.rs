use bytes::Bytes;
use hlorank_graph::EncodedBatch;
use hlorank_proto::v1::MeasurementFailure;

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

/// What a client says of its measurements, value by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentTimes {
    pub(crate) seconds: Vec<f64>,
    /// Empty for 1 each.
    pub(crate) repeats: Vec<u32>,
    /// How each failed, as its number on the wire, 0 if it did not; empty if none did.
    pub(crate) failures: Vec<i32>,
    /// Empty for ids that are made of outcomes.
    pub(crate) ids: Vec<Bytes>,
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
            => TooManyMeasurements.at(field).found(found).allowed(limit),
        #[error("{field} has {found} values for {expected} measured configurations; send one for each")]
        WrongCount { field: &'static str, found: usize, expected: usize } => WrongCount.at(field),
        #[error("{field}[{index}] is {found}, expected {expected}")]
        OutOfRange { field: &'static str, index: usize, found: String, expected: &'static str } => ValueOutOfRange.at(field),
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

/// Maximum length of an id.
const MAX_ID_BYTES: usize = 64;

impl SentMeasurements {
    /// Checks the measurements of a batch.
    pub(crate) fn new(
        fields: &MeasurementFields,
        target: String,
        batch: Option<EncodedBatch>,
        times: &SentTimes,
    ) -> Result<Self, MeasurementError> {
        let count = batch.as_ref().map_or(0, EncodedBatch::count);
        let &MeasurementFields {
            batch: field,
            limit,
            hint,
            ..
        } = fields;
        // The number first: it bounds the work of all other checks.
        if count > limit {
            return Err(MeasurementError::TooMany {
                field,
                found: count,
                limit,
                hint,
            });
        }
        let outcomes = times.outcomes(fields, count)?;
        // After the outcomes, because ids that the client left out are made of them.
        let ids = times.ids(fields, &outcomes)?;
        Ok(Self {
            target,
            batch,
            outcomes,
            ids,
        })
    }
}

impl SentTimes {
    fn outcomes(
        &self,
        fields: &MeasurementFields,
        count: usize,
    ) -> Result<Vec<Outcome>, MeasurementError> {
        check_count(fields.seconds, self.seconds.len(), count)?;
        if !self.repeats.is_empty() {
            check_count(fields.repeats, self.repeats.len(), count)?;
        }
        if !self.failures.is_empty() {
            check_count(fields.failures, self.failures.len(), count)?;
        }
        (0..count)
            .map(|index| self.outcome(fields, index))
            .collect()
    }

    fn outcome(
        &self,
        fields: &MeasurementFields,
        index: usize,
    ) -> Result<Outcome, MeasurementError> {
        let seconds = self.seconds[index];
        // The lists are complete or empty, and an empty one stands for default values.
        let failure = self.failures.get(index).copied().unwrap_or_default();
        let repeats = self.repeats.get(index).copied().unwrap_or(1);
        if MeasurementFailure::try_from(failure).is_err() {
            let expected = "a MeasurementFailure";
            return out_of_range(fields.failures, index, failure.to_string(), expected);
        }
        let [shortest, longest] = SECONDS;
        let is_possible = match failure {
            0 => (shortest..=longest).contains(&seconds),
            _ => seconds == 0.0,
        };
        if !is_possible {
            let expected = match failure {
                0 => "from 1e-12 to 1e9, or 0 and a failure",
                _ => "0, because the configuration failed",
            };
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
    }

    fn ids(
        &self,
        fields: &MeasurementFields,
        outcomes: &[Outcome],
    ) -> Result<Vec<Vec<u8>>, MeasurementError> {
        if self.ids.is_empty() {
            return Ok(outcomes.iter().map(Outcome::id).collect());
        }
        check_count(fields.ids, self.ids.len(), outcomes.len())?;
        let is_refused = |id: &Bytes| !(1..=MAX_ID_BYTES).contains(&id.len());
        if let Some(index) = self.ids.iter().position(is_refused) {
            let found = format!("{} bytes long", self.ids[index].len());
            return out_of_range(fields.ids, index, found, "1 to 64 bytes");
        }
        Ok(self.ids.iter().map(|id| id.to_vec()).collect())
    }
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

    fn outcomes(
        seconds: &[f64],
        repeats: &[u32],
        failures: &[i32],
    ) -> Result<Vec<Outcome>, MeasurementError> {
        let seconds = seconds.to_vec();
        let repeats = repeats.to_vec();
        let failures = failures.to_vec();
        SentTimes {
            seconds,
            repeats,
            failures,
            ids: Vec::new(),
        }
        .outcomes(&ADAPT, 2)
    }

    #[test]
    fn repeats_are_1_and_nothing_failed_by_default() {
        let outcome = |seconds, failure| Outcome {
            seconds,
            repeats: 1,
            failure,
        };
        assert_eq!(
            outcomes(&[1.0, 2.0], &[], &[]).unwrap(),
            [outcome(1.0, 0), outcome(2.0, 0)]
        );
        let failed = outcomes(&[1.0, 0.0], &[1, 1], &[0, 2]).unwrap();
        assert_eq!(failed, [outcome(1.0, 0), outcome(0.0, 2)]);
    }

    #[test]
    fn ids_are_given_or_made_of_outcomes() {
        let outcomes = [Outcome {
            seconds: 1.0,
            repeats: 1,
            failure: 0,
        }; 2];
        let ids = |ids: &[&'static [u8]]| {
            let ids = ids.iter().map(|id| Bytes::from_static(id)).collect();
            SentTimes {
                ids,
                ..SentTimes::default()
            }
            .ids(&REPORT, &outcomes)
        };
        assert_eq!(ids(&[b"a", b"b"]).unwrap(), [b"a", b"b"]);
        assert_eq!(ids(&[]).unwrap(), [outcomes[0].id(), outcomes[0].id()]);
        for (refused, expected) in [
            (ids(&[b"a", b""]), "ids[1] is 0 bytes long"),
            (ids(&[&[7; 65], b"a"]), "ids[0] is 65 bytes long"),
        ] {
            assert!(refused.unwrap_err().to_string().contains(expected));
        }
        assert!(
            ids(&[b"a"])
                .unwrap_err()
                .to_string()
                .contains("ids has 1 values for 2")
        );
    }
}
