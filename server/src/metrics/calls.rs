use std::time::Duration;

use metrics::{Counter, Histogram};
use tonic::Code;

use super::{family::Family, recorder::Recorder};

const REQUESTS: Family<Counter, 3> = Family::new(
    "hlorank_requests_total",
    ["method", "model", "code"],
    "Ended calls by gRPC status code. A call whose client disconnected is CANCELLED. The model is none for methods \
     without a model, and for calls that ended before one was selected",
);

const SECONDS: Family<Histogram, 2> = Family::new(
    "hlorank_request_duration_seconds",
    ["method", "model"],
    "Time from the headers of a call to the end of its answer, including messages and streams",
);

/// Names of the gRPC status codes, in the order of their numbers.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Metrics of the calls to one method, per selected model.
pub struct CallSeries {
    /// Indexed by the number of the status code.
    codes: [Counter; CODES.len()],
    seconds: Histogram,
}

/// Returns the name of a gRPC status code, as in the specification.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    // The numbers of the codes are those of the specification, from 0 without gaps.
    CODES[code as usize]
}

impl CallSeries {
    pub(super) fn new(recorder: &Recorder, method: &str, model: &str) -> Self {
        Self {
            // A counter that appeared with its first call would hide that call from `rate`, so
            // every code has one from the start.
            codes: CODES.map(|code| REQUESTS.series(recorder, [method, model, code])),
            seconds: SECONDS.series(recorder, [method, model]),
        }
    }

    pub(super) fn ended(&self, code: Code, duration: Duration) {
        self.codes[code as usize].increment(1);
        self.seconds.record(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_name() {
        for (number, name) in (0..).zip(CODES) {
            let shown: String = format!("{:?}", Code::from_i32(number)).to_uppercase();
            assert_eq!(name.replace('_', ""), shown);
        }
    }
}
