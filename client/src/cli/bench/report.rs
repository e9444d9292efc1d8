use std::time::Duration;

use serde::Serialize;

use super::tally::{Class, Failure, Interval, Kind, Tally, Times};
use crate::cli::output::grouped;

/// The result of a load.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport {
    pub(super) plan: Plan,
    /// Time from the start to the end of the plan, or to the last answer after it.
    pub(super) seconds: f64,
    /// Whether Ctrl-C ended the load early.
    pub(super) interrupted: bool,
    pub(super) calls: Vec<ClassReport>,
    pub(super) all: ClassReport,
    pub(super) failures: Vec<FailureReport>,
    pub(super) starts: Starts,
    pub(super) over_time: Vec<IntervalReport>,
}

/// The planned load.
#[derive(Debug, Serialize)]
pub(super) struct Plan {
    /// Calls per second; `None` if a trace determines the times.
    pub(super) rate: Option<f64>,
    pub(super) seconds: f64,
    pub(super) seed: u64,
    pub(super) connections: usize,
    pub(super) max_in_flight: u32,
}

/// Counts and latencies of calls with up to some number of configurations. Each call that is due is sent or not. Each
/// call that is sent is answered, has failed or is unfinished.
#[derive(Debug, Serialize)]
pub(super) struct ClassReport {
    /// Method of the calls; `None` for all calls.
    pub(super) method: Option<&'static str>,
    /// Maximum number of configurations; `None` for all calls.
    pub(super) max_configurations: Option<usize>,
    pub(super) due: u64,
    pub(super) sent: u64,
    /// Number of calls not sent because too many were in flight.
    pub(super) not_sent: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) unfinished: u64,
    pub(super) answered_per_second: f64,
    pub(super) latency_ms: Latency,
    pub(super) percentiles: Vec<Percentile>,
}

/// Latency in milliseconds, from the time at which calls were due.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Latency {
    pub(super) mean: Option<f64>,
    pub(super) p50: Option<f64>,
    pub(super) p90: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) p99_9: Option<f64>,
    pub(super) max: Option<f64>,
}

/// A point of a latency distribution.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Percentile {
    pub(super) percent: f64,
    pub(super) ms: f64,
}

/// Calls that failed for one reason.
#[derive(Debug, Serialize)]
pub(super) struct FailureReport {
    pub(super) code: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) calls: u64,
    pub(super) latency_ms: Latency,
}

/// How late calls began, which is the fault of this program and not of the server.
#[derive(Debug, Serialize)]
pub(super) struct Starts {
    pub(super) late_ms: Latency,
    pub(super) later_than_10_ms: u64,
}

/// Calls that were due within one interval of the run.
#[derive(Debug, Serialize)]
pub(super) struct IntervalReport {
    pub(super) from_seconds: f64,
    pub(super) seconds: f64,
    pub(super) due: u64,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) latency_ms: Latency,
}

const STREAM: &str = "RankConfigsStream";

/// Number of points of a distribution each time the share of slower calls falls to a tenth.
const POINTS: f64 = 8.0;

impl BenchReport {
    pub(super) fn of(tally: &Tally, plan: Plan, elapsed: Duration, interrupted: bool) -> Self {
        let seconds = elapsed.as_secs_f64();
        let class = |(kind, class): (&Kind, &Class)| ClassReport::of(class, Some(*kind), seconds);
        Self {
            plan,
            seconds,
            interrupted,
            calls: tally.classes.iter().map(class).collect(),
            all: ClassReport::of(&tally.all, None, seconds),
            failures: tally.failures.iter().map(FailureReport::from).collect(),
            starts: Starts {
                late_ms: (&tally.late).into(),
                later_than_10_ms: tally.late_calls,
            },
            over_time: over_time(tally),
        }
    }
}

fn over_time(tally: &Tally) -> Vec<IntervalReport> {
    let starts = (0..).map(|number| tally.width * number);
    let intervals = starts.zip(&tally.intervals);
    intervals
        .map(|(from, interval)| IntervalReport::of(interval, from, tally.width))
        .collect()
}

impl Kind {
    fn method(self) -> &'static str {
        if self.is_stream {
            STREAM
        } else {
            "RankConfigs"
        }
    }
}

impl ClassReport {
    fn of(class: &Class, kind: Option<Kind>, seconds: f64) -> Self {
        let answered = class.answered.count();
        Self {
            method: kind.map(Kind::method),
            max_configurations: kind.map(|kind| kind.max_configurations),
            due: class.sent + class.not_sent,
            sent: class.sent,
            not_sent: class.not_sent,
            answered,
            failed: class.failed,
            // A call is counted as sent before it can end, so this is never below 0.
            unfinished: class.sent - answered - class.failed,
            answered_per_second: number(answered) / seconds,
            latency_ms: (&class.answered).into(),
            percentiles: percentiles(&class.answered),
        }
    }

    /// Returns the name of the row or curve; `unit` follows the number.
    pub(super) fn name(&self, unit: &str) -> String {
        let streamed = if self.method == Some(STREAM) {
            ", streamed"
        } else {
            ""
        };
        let name = |most| format!("up to {}{unit}{streamed}", grouped(most));
        self.max_configurations
            .map_or_else(|| "all".to_owned(), name)
    }
}

impl From<(&Failure, &Times)> for FailureReport {
    fn from((failure, times): (&Failure, &Times)) -> Self {
        let Failure { code, reason } = failure.clone();
        Self {
            code,
            reason,
            calls: times.count(),
            latency_ms: times.into(),
        }
    }
}

impl IntervalReport {
    fn of(interval: &Interval, from: Duration, width: Duration) -> Self {
        Self {
            from_seconds: from.as_secs_f64(),
            seconds: width.as_secs_f64(),
            due: interval.due,
            answered: interval.answered.count(),
            failed: interval.failed,
            latency_ms: (&interval.answered).into(),
        }
    }
}

impl From<&Times> for Latency {
    fn from(times: &Times) -> Self {
        let at = |quantile| times.at(quantile).map(milliseconds);
        Self {
            mean: times.mean().map(milliseconds),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            max: at(1.0),
        }
    }
}

/// Returns the latency distribution from 0 % to 100 %.
fn percentiles(times: &Times) -> Vec<Percentile> {
    // The points are equally far apart in the logarithm of the share of slower calls, which is the
    // axis of the plot, and end where that share is less than one call.
    let above = (0_i32..).map(|point| 10_f64.powf(-f64::from(point) / POINTS));
    let above = above.take_while(|above| above * number(times.count()) >= 1.0);
    let point = |quantile| {
        Some(Percentile {
            percent: quantile * 100.0,
            ms: milliseconds(times.at(quantile)?),
        })
    };
    let quantiles = above.map(|above| 1.0 - above).chain([1.0]);
    quantiles.filter_map(point).collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "calls stay far below 2^53")]
fn number(count: u64) -> f64 {
    count as f64
}
