use std::{collections::HashMap, sync::Arc, time::Duration};

use hlorank_proto::methods::METHODS;
use metrics::Counter;
use tonic::Code;

use super::{calls::CallSeries, family::Family, model::ModelSeries, recorder::Recorder};

const ERRORS: Family<Counter, 1> = Family::new(
    "hlorank_errors_total",
    ["reason"],
    "Failed calls by the reason in their ErrorInfo; OTHER for a reason that is not listed",
);

/// Value of the label `model` for a call without a model.
const NO_MODEL: &str = "none";

/// Value of the label `reason` for an unlisted reason.
const OTHER: &str = "OTHER";

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
    without_model: CallSeries,
}

impl Methods {
    pub(super) fn new(recorder: &Recorder, reasons: &[&'static str]) -> Self {
        let methods = METHODS.iter().map(|method| {
            let series = Method {
                service: method.service,
                name: method.name,
                without_model: CallSeries::new(recorder, method.name, NO_MODEL),
            };
            (
                format!("/{}/{}", method.service, method.name),
                Arc::new(series),
            )
        });
        // Only listed reasons become label values, so that their number is bounded.
        let reasons = reasons.iter().copied().chain([OTHER]);
        Self {
            by_path: methods.collect(),
            errors: reasons
                .map(|reason| (reason, ERRORS.series(recorder, [reason])))
                .collect(),
        }
    }

    /// Returns the method at a path such as `/hlorank.v1.CostModelService/PutGraph`, if it is one of ours.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Arc<Method>> {
        self.by_path.get(path).cloned()
    }

    /// Counts an ended call. `reason` is that of a failed call.
    pub fn ended(&self, series: &CallSeries, code: Code, reason: Option<&str>, duration: Duration) {
        series.ended(code, duration);
        if let Some(reason) = reason
            && let Some(counter) = self.errors.get(reason).or_else(|| self.errors.get(OTHER))
        {
            counter.increment(1);
        }
    }
}

impl Method {
    /// Returns the metrics of the method's calls with the model that they selected.
    #[must_use]
    pub fn series<'a>(&'a self, model: Option<&'a ModelSeries>) -> &'a CallSeries {
        let of_model = model.and_then(|model| model.calls(self.name));
        of_model.unwrap_or(&self.without_model)
    }
}
