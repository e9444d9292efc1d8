//! Counts calls and records their latencies.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use hlorank_client::{ClientError, Refusal};

use super::load::ScheduledCall;

/// A histogram of times in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Times(Histogram<u64>);

/// Counts and latencies of a run. Memory does not grow with the number of calls.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) classes: BTreeMap<Kind, Class>,
    pub(super) all: Class,
    pub(super) failures: BTreeMap<Failure, Times>,
    /// Delays from when calls were due until they began.
    pub(super) late: Times,
    /// Number of calls that began later than [`LATE`].
    pub(super) late_calls: u64,
    pub(super) intervals: Vec<Interval>,
    /// Duration of an interval.
    pub(super) width: Duration,
    /// Time at which the last call ended, since the start.
    pub(super) last: Duration,
}

/// The key by which calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) is_stream: bool,
    /// Maximum number of configurations: a power of ten.
    pub(super) max_configurations: usize,
}

/// Counts of the calls of one kind.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) sent: u64,
    pub(super) not_sent: u64,
    pub(super) failed: u64,
    /// Latencies of answered calls, from when they were due.
    pub(super) answered: Times,
}

/// Counts of the calls that were due in one interval of the run.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    pub(super) due: u64,
    pub(super) failed: u64,
    pub(super) answered: Times,
}

/// The reason for which calls failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Failure {
    /// gRPC status code; `None` for an invalid answer.
    pub(super) code: Option<String>,
    pub(super) reason: Option<String>,
}

/// Precision of the times of the whole run and of an interval, in decimal digits.
const DIGITS: u8 = 3;
// A third digit would take eight times the memory, and there are a hundred intervals.
const INTERVAL_DIGITS: u8 = 2;

const INTERVALS: u32 = 100;
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum delay with which a call counts as begun in time.
pub(super) const LATE: Duration = Duration::from_millis(10);

impl Times {
    fn new(digits: u8) -> Self {
        Self(Histogram::new(digits).expect("a histogram supports up to 5 digits"))
    }

    fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let recorded = self.0.record(nanoseconds);
        recorded.expect("the histogram resizes itself");
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the time at a quantile from 0 to 1, or `None` if the histogram is empty.
    pub(super) fn at(&self, quantile: f64) -> Option<Duration> {
        // An empty histogram has 0 at every quantile, which would read as a very short time.
        (!self.0.is_empty()).then(|| Duration::from_nanos(self.0.value_at_quantile(quantile)))
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_secs_f64(self.0.mean() / 1e9))
    }
}

impl Class {
    fn new() -> Self {
        Self {
            sent: 0,
            not_sent: 0,
            failed: 0,
            answered: Times::new(DIGITS),
        }
    }
}

impl Tally {
    /// Returns the empty tally of a load of this duration.
    pub(super) fn new(length: Duration) -> Self {
        // Shorter intervals would have too few calls for a quantile.
        let width = (length / INTERVALS).max(SHORTEST_INTERVAL);
        let interval = Interval {
            due: 0,
            failed: 0,
            answered: Times::new(INTERVAL_DIGITS),
        };
        // The last call of a trace is due at `length` itself, so an interval may begin there.
        let starts = (0..).map(|number| width * number);
        let intervals = starts.take_while(|at| *at <= length);
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

    /// Counts a call that is sent.
    pub(super) fn count_sent(&mut self, scheduled: &ScheduledCall) {
        self.interval(scheduled).due += 1;
        for class in self.classes_of(scheduled) {
            class.sent += 1;
        }
    }

    /// Counts a call that is not sent, because too many are in flight.
    pub(super) fn count_not_sent(&mut self, scheduled: &ScheduledCall) {
        self.interval(scheduled).due += 1;
        for class in self.classes_of(scheduled) {
            class.not_sent += 1;
        }
    }

    /// Counts a call that begins with this delay after it was due.
    pub(super) fn count_begun(&mut self, delay: Duration) {
        self.late.add(delay);
        self.late_calls += u64::from(delay > LATE);
    }

    /// Counts a call that has ended. `latency` is the time since it was due.
    pub(super) fn count_ended(
        &mut self,
        scheduled: &ScheduledCall,
        latency: Duration,
        error: Option<&ClientError>,
    ) {
        self.last = self.last.max(scheduled.at + latency);
        match error {
            None => self.count_answered(scheduled, latency),
            Some(error) => self.count_failed(scheduled, latency, error.into()),
        }
    }

    fn count_answered(&mut self, scheduled: &ScheduledCall, latency: Duration) {
        self.interval(scheduled).answered.add(latency);
        for class in self.classes_of(scheduled) {
            class.answered.add(latency);
        }
    }

    fn count_failed(&mut self, scheduled: &ScheduledCall, latency: Duration, failure: Failure) {
        self.interval(scheduled).failed += 1;
        for class in self.classes_of(scheduled) {
            class.failed += 1;
        }
        // Latencies of failures stay apart: a server that rejects at once would look fast.
        let times = self.failures.entry(failure);
        times.or_insert_with(|| Times::new(DIGITS)).add(latency);
    }

    /// Returns the class of the kind of the call, and the class of all calls.
    fn classes_of(&mut self, scheduled: &ScheduledCall) -> [&mut Class; 2] {
        let kind = Kind {
            is_stream: scheduled.call.batch().is_some(),
            max_configurations: size_class(scheduled.call.configurations()),
        };
        let class = self.classes.entry(kind).or_insert_with(Class::new);
        [class, &mut self.all]
    }

    // A call belongs to the interval in which it was due and not to that of its answer, so that a
    // stall shows when it began.
    fn interval(&mut self, scheduled: &ScheduledCall) -> &mut Interval {
        let number = scheduled.at.div_duration_f64(self.width);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "runs have few intervals"
        )]
        let number = (number as usize).min(self.intervals.len() - 1);
        &mut self.intervals[number]
    }
}

/// Returns the smallest power of ten that is not below the number of configurations.
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
        Self {
            code: error.code_name(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_ten() {
        assert_eq!(
            [1, 2, 10, 11, 100, 47_712].map(size_class),
            [1, 10, 10, 100, 100, 100_000]
        );
    }

    #[test]
    fn times_have_the_precision_of_their_digits() {
        let mut times = Times::new(DIGITS);
        assert_eq!((times.at(0.5), times.mean()), (None, None));
        (1..=1000).for_each(|milliseconds| times.add(Duration::from_millis(milliseconds)));
        for (quantile, milliseconds) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let time = times.at(quantile).unwrap().as_secs_f64() * 1e3;
            assert!(
                (time / milliseconds - 1.0).abs() < 1e-3,
                "{quantile}: {time}"
            );
        }
    }

    #[test]
    fn a_run_has_at_least_one_interval_and_about_a_hundred_at_most() {
        for (milliseconds, intervals) in
            [(0, 1), (50, 1), (250, 3), (30_000, 101), (3_600_000, 101)]
        {
            let tally = Tally::new(Duration::from_millis(milliseconds));
            assert_eq!(tally.intervals.len(), intervals, "{milliseconds}");
        }
    }
}
