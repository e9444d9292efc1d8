//! What came of the calls.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use hlorank_client::{ClientError, Refusal};

use super::load::Due;

/// Times in nanoseconds, as exact as their digits.
#[derive(Clone, Debug)]
pub(super) struct Times(Histogram<u64>);

/// Everything that is counted. Memory does not grow with the number of calls.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) classes: BTreeMap<Kind, Class>,
    pub(super) all: Class,
    pub(super) failures: BTreeMap<Failure, Times>,
    /// From when calls were due until they began.
    pub(super) late: Times,
    /// Calls that began later than [`LATE`].
    pub(super) late_calls: u64,
    pub(super) intervals: Vec<Interval>,
    /// How long an interval is.
    pub(super) width: Duration,
    /// When the last call ended, since the start.
    pub(super) last: Duration,
}

/// Calls that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) is_stream: bool,
    /// How many configurations they have at most: a power of ten.
    pub(super) max_configurations: usize,
}

/// Calls of one kind.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) sent: u64,
    pub(super) not_sent: u64,
    pub(super) failed: u64,
    /// Of those that were answered, from when they were due.
    pub(super) answered: Times,
}

/// Calls that were due in a part of the run.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    pub(super) due: u64,
    pub(super) failed: u64,
    pub(super) answered: Times,
}

/// Why calls were not answered.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failure {
    /// Of gRPC; `None` for an answer that breaks the contract.
    pub(super) code: Option<String>,
    pub(super) reason: Option<String>,
}

/// Digits of the times of the whole run, and of an interval.
const DIGITS: u8 = 3;
const INTERVAL_DIGITS: u8 = 2;

const INTERVALS: u32 = 100;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Until then a call counts as begun in time.
pub(super) const LATE: Duration = Duration::from_millis(10);

impl Times {
    fn new(digits: u8) -> Self {
        Self(Histogram::new(digits).expect("so many digits are possible"))
    }

    fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.record(nanoseconds).expect("it grows to any number");
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The time that a part of them, from 0 to 1, did not exceed; `None` where there are none.
    pub(super) fn at(&self, quantile: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(quantile)))
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_secs_f64(self.0.mean() / 1e9))
    }
}

impl Class {
    fn new() -> Self {
        Self { sent: 0, not_sent: 0, failed: 0, answered: Times::new(DIGITS) }
    }
}

impl Tally {
    /// Of a run that sends for so long.
    pub(super) fn new(length: Duration) -> Self {
        let width = (length / INTERVALS).max(SHORTEST_INTERVAL);
        let interval = Interval { due: 0, failed: 0, answered: Times::new(INTERVAL_DIGITS) };
        let intervals = (0..).map(|number| width * number).take_while(|at| *at <= length);
        Self {
            classes: BTreeMap::new(),
            all: Class::new(),
            failures: BTreeMap::new(),
            late: Times::new(DIGITS),
            late_calls: 0,
            intervals: intervals.map(|_| interval.clone()).collect(),
            width,
            last: Duration::ZERO,
        }
    }

    /// A call is sent.
    pub(super) fn sent(&mut self, due: &Due) {
        self.interval(due).due += 1;
        for class in self.classes_of(due) {
            class.sent += 1;
        }
    }

    /// A call cannot be sent.
    pub(super) fn not_sent(&mut self, due: &Due) {
        self.interval(due).due += 1;
        for class in self.classes_of(due) {
            class.not_sent += 1;
        }
    }

    /// A call begins so long after it was due.
    pub(super) fn begins(&mut self, late: Duration) {
        self.late.add(late);
        self.late_calls += u64::from(late > LATE);
    }

    /// A call has ended so long after it was due.
    pub(super) fn ended(&mut self, due: &Due, took: Duration, error: Option<&ClientError>) {
        self.last = self.last.max(due.at + took);
        let Some(error) = error else {
            self.interval(due).answered.add(took);
            for class in self.classes_of(due) {
                class.answered.add(took);
            }
            return;
        };
        self.interval(due).failed += 1;
        for class in self.classes_of(due) {
            class.failed += 1;
        }
        let failure = Failure::from(error);
        self.failures.entry(failure).or_insert_with(|| Times::new(DIGITS)).add(took);
    }

    /// That of its kind, and that of all.
    fn classes_of(&mut self, due: &Due) -> [&mut Class; 2] {
        let max_configurations = size_class(due.call.configurations());
        let kind = Kind { is_stream: due.call.batch().is_some(), max_configurations };
        [self.classes.entry(kind).or_insert_with(Class::new), &mut self.all]
    }

    fn interval(&mut self, due: &Due) -> &mut Interval {
        let number = due.at.div_duration_f64(self.width);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "runs have few intervals"
        )]
        let number = (number as usize).min(self.intervals.len() - 1);
        &mut self.intervals[number]
    }
}

/// The power of ten that so many configurations do not exceed.
fn size_class(configurations: usize) -> usize {
    let mut size = 1_usize;
    while size < configurations {
        size = size.saturating_mul(10);
    }
    size
}

impl From<&ClientError> for Failure {
    fn from(error: &ClientError) -> Self {
        let reason = error.refusal().and_then(Refusal::reason).map(str::to_owned);
        Self { code: error.code_name(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_ten() {
        assert_eq!([1, 2, 10, 11, 100, 47_712].map(size_class), [1, 10, 10, 100, 100, 100_000]);
    }

    #[test]
    fn times_are_as_exact_as_their_digits() {
        let mut times = Times::new(DIGITS);
        assert_eq!((times.at(0.5), times.mean()), (None, None));
        (1..=1000).for_each(|milliseconds| times.add(Duration::from_millis(milliseconds)));
        for (quantile, milliseconds) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let time = times.at(quantile).unwrap().as_secs_f64() * 1e3;
            assert!((time / milliseconds - 1.0).abs() < 1e-3, "{quantile}: {time}");
        }
    }

    #[test]
    fn a_run_has_a_hundred_intervals_at_most_and_one_at_least() {
        for (milliseconds, intervals) in [(0, 1), (50, 1), (250, 3), (30_000, 101), (3_600_000, 101)] {
            let tally = Tally::new(Duration::from_millis(milliseconds));
            assert_eq!(tally.intervals.len(), intervals, "{milliseconds}");
        }
    }
}
