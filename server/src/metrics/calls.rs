use std::{collections::HashMap, sync::Arc, time::Duration};

use hlorank_proto::methods::METHODS;
use metrics::{Counter, Histogram};
use tonic::Code;

use super::recorder::Recorder;

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

/// Metrics of the methods of our services, and of the reasons of failed calls.
pub struct Methods {
    by_path: HashMap<String, Arc<Method>>,
    errors: HashMap<&'static str, Counter>,
}

/// Metrics of one method.
pub struct Method {
    /// Name of the service, such as `hlorank.v1.CostModelService`.
    pub service: &'static str,
    /// Name of the method, such as `PutGraph`.
    pub name: &'static str,
    /// Whether every call changes what the server serves or keeps.
    pub changes: bool,
    without_model: CallSeries,
}

/// Metrics of the calls to one method, per selected model.
pub struct CallSeries {
    /// Indexed by the number of the status code.
    codes: [Counter; CODES.len()],
    seconds: Histogram,
}

/// Value of the label `model` for a call without a model.
const NO_MODEL: &str = "none";

/// Value of the label `reason` for an unlisted reason.
const OTHER: &str = "OTHER";

/// Returns the name of a gRPC status code, as in the specification.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    // The numbers of the codes are those of the specification, from 0 without gaps.
    CODES[code as usize]
}

impl Methods {
    pub(super) fn new(recorder: &Recorder, reasons: &[&'static str]) -> Self {
        let methods = METHODS.iter().map(|method| {
            let series = Method {
                service: method.service,
                name: method.name,
                changes: method.changes,
                without_model: CallSeries::new(recorder, method.name, NO_MODEL),
            };
            (
                format!("/{}/{}", method.service, method.name),
                Arc::new(series),
            )
        });
        let failed = |reason| {
            recorder.series(
                "hlorank_errors_total",
                "Failed calls by the reason in their ErrorInfo; OTHER for a reason that is not listed",
                &[("reason", reason)],
            )
        };
        // Only listed reasons become label values, so that their number is bounded.
        let reasons = reasons.iter().copied().chain([OTHER]);
        Self {
            by_path: methods.collect(),
            errors: reasons.map(|reason| (reason, failed(reason))).collect(),
        }
    }

    /// Returns the method at a path such as `/hlorank.v1.CostModelService/PutGraph`, if it is one of ours.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Arc<Method>> {
        self.by_path.get(path).cloned()
    }

    /// Counts an ended call. `reason` is that of a failed call.
    pub fn ended(&self, series: &CallSeries, code: Code, reason: Option<&str>, duration: Duration) {
        series.codes[code as usize].increment(1);
        series.seconds.record(duration);
        if let Some(reason) = reason
            && let Some(counter) = self.errors.get(reason).or_else(|| self.errors.get(OTHER))
        {
            counter.increment(1);
        }
    }
}

impl Method {
    /// Returns the metrics of a call to the method: those of the model that it selected, or of calls without a model.
    #[must_use]
    pub fn series<'a>(&'a self, of_model: Option<&'a CallSeries>) -> &'a CallSeries {
        of_model.unwrap_or(&self.without_model)
    }
}

impl CallSeries {
    pub(super) fn new(recorder: &Recorder, method: &str, model: &str) -> Self {
        let ended = |code| {
            recorder.series(
                "hlorank_requests_total",
                "Ended calls by gRPC status code. A call whose client disconnected is CANCELLED. The model is none for methods \
                 without a model, and for calls that ended before one was selected",
                &[("method", method), ("model", model), ("code", code)],
            )
        };
        Self {
            // A counter that appeared with its first call would hide that call from `rate`, so
            // every code has one from the start.
            codes: CODES.map(ended),
            seconds: recorder.series(
                "hlorank_request_duration_seconds",
                "Time from the headers of a call to the end of its answer, including messages and streams",
                &[("method", method), ("model", model)],
            ),
        }
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
