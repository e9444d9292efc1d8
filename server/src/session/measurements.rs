use hlorank_graph::EncodedBatch;

/// Measured run times as a client sent them, checked but for their configurations.
pub(crate) struct SentMeasurements {
    /// The client's name for what they were measured on.
    pub(super) target: String,
    /// The measured configurations; `None` if there are none.
    pub(super) batch: Option<EncodedBatch>,
    /// `[configurations]` what came of each.
    pub(super) outcomes: Vec<Outcome>,
}

/// What came of measuring a configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Mean run time; `None` if it failed.
    pub(super) seconds: Option<f64>,
    /// Number of runs.
    pub(super) repeats: u32,
}

/// What a client says of its measurements, value by value.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentTimes {
    pub(crate) seconds: Vec<f64>,
    /// Empty for 1 each.
    pub(crate) repeats: Vec<u32>,
    /// Whether each failed; empty if none did.
    pub(crate) failed: Vec<bool>,
}

/// The reason why measurements were refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeasurementError {
    /// There are more measurements than one call may send.
    #[error(
        "adapt.batch has {found} measured configurations, at most {limit} are accepted; send those that you trust most"
    )]
    TooMany {
        /// Measurements sent.
        found: usize,
        /// Measurements allowed.
        limit: usize,
    },
    /// A list has not one value per measured configuration.
    #[error("{field} has {found} values for {expected} measured configurations; send one for each")]
    WrongCount {
        /// The list.
        field: &'static str,
        /// Its length.
        found: usize,
        /// Number of measured configurations.
        expected: usize,
    },
    /// A value cannot be what was measured.
    #[error("{field}[{index}] is {found}, expected {expected}")]
    OutOfRange {
        /// The list.
        field: &'static str,
        /// Number of the measured configuration.
        index: usize,
        /// The value.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
}

/// Maximum number of measurements of one call. Learning takes time with their cube.
pub(super) const MAX_MEASUREMENTS: usize = 300;

/// The shortest and the longest run time, in seconds.
const SECONDS: [f64; 2] = [1e-12, 1e9];

/// Maximum number of runs of one measurement.
const MAX_REPEATS: u32 = 1_000_000;

impl SentMeasurements {
    /// Checks the measurements of a batch.
    pub(crate) fn new(
        target: String,
        batch: Option<EncodedBatch>,
        times: &SentTimes,
    ) -> Result<Self, MeasurementError> {
        let count = batch.as_ref().map_or(0, EncodedBatch::count);
        if count > MAX_MEASUREMENTS {
            return Err(MeasurementError::TooMany { found: count, limit: MAX_MEASUREMENTS });
        }
        Ok(Self { target, batch, outcomes: times.outcomes(count)? })
    }
}

impl SentTimes {
    fn outcomes(&self, count: usize) -> Result<Vec<Outcome>, MeasurementError> {
        let Self { seconds, repeats, failed } = self;
        check_count("adapt.seconds", seconds.len(), count)?;
        if !repeats.is_empty() {
            check_count("adapt.repeats", repeats.len(), count)?;
        }
        if !failed.is_empty() {
            check_count("adapt.failures", failed.len(), count)?;
        }
        let outcome = |index| {
            let failed = failed.get(index).copied().unwrap_or_default();
            let repeats = repeats.get(index).copied().unwrap_or(1);
            Ok(Outcome {
                seconds: check_seconds(index, seconds[index], failed)?,
                repeats: check_repeats(index, repeats)?,
            })
        };
        (0..count).map(outcome).collect()
    }
}

fn check_count(field: &'static str, found: usize, expected: usize) -> Result<(), MeasurementError> {
    if found == expected { Ok(()) } else { Err(MeasurementError::WrongCount { field, found, expected }) }
}

fn check_seconds(index: usize, seconds: f64, failed: bool) -> Result<Option<f64>, MeasurementError> {
    let [shortest, longest] = SECONDS;
    let expected = match failed {
        true if seconds == 0.0 => return Ok(None),
        true => "0, because the configuration failed",
        false if (shortest..=longest).contains(&seconds) => return Ok(Some(seconds)),
        false => "from 1e-12 to 1e9, or 0 and a value in adapt.failures",
    };
    Err(MeasurementError::OutOfRange { field: "adapt.seconds", index, found: seconds.to_string(), expected })
}

fn check_repeats(index: usize, repeats: u32) -> Result<u32, MeasurementError> {
    let (field, found, expected) = ("adapt.repeats", repeats.to_string(), "from 1 to 1000000");
    let refused = MeasurementError::OutOfRange { field, index, found, expected };
    if (1..=MAX_REPEATS).contains(&repeats) { Ok(repeats) } else { Err(refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(seconds: &[f64], repeats: &[u32], failed: &[bool]) -> Result<Vec<Outcome>, MeasurementError> {
        let (seconds, repeats, failed) = (seconds.to_vec(), repeats.to_vec(), failed.to_vec());
        SentTimes { seconds, repeats, failed }.outcomes(2)
    }

    #[test]
    fn repeats_are_1_and_nothing_failed_by_default() {
        let outcome = |seconds| Outcome { seconds, repeats: 1 };
        assert_eq!(outcomes(&[1.0, 2.0], &[], &[]).unwrap(), [outcome(Some(1.0)), outcome(Some(2.0))]);
        let failed = outcomes(&[1.0, 0.0], &[1, 1], &[false, true]).unwrap();
        assert_eq!(failed, [outcome(Some(1.0)), outcome(None)]);
    }

    #[test]
    fn impossible_times_are_named_by_number() {
        for seconds in [0.0, -1.0, f64::NAN, 1e300, f64::INFINITY, 1e-300] {
            let error = outcomes(&[1.0, seconds], &[], &[]).unwrap_err().to_string();
            assert!(error.contains("adapt.seconds[1]") && error.contains("1e-12"), "{error}");
        }
        assert!(outcomes(&[1.0, 1.0], &[], &[false, true]).is_err(), "a failure has no time");
    }

    #[test]
    fn lists_have_a_value_for_each_configuration() {
        assert!(outcomes(&[1.0], &[], &[]).unwrap_err().to_string().contains("1 values for 2"));
        assert!(outcomes(&[1.0, 2.0], &[1], &[]).unwrap_err().to_string().contains("adapt.repeats"));
        assert!(outcomes(&[1.0, 2.0], &[], &[true]).unwrap_err().to_string().contains("adapt.failures"));
        assert!(
            outcomes(&[1.0, 2.0], &[1, 0], &[]).unwrap_err().to_string().contains("adapt.repeats[1] is 0")
        );
    }
}
