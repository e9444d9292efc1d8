use std::{collections::HashMap, sync::Arc, time::Duration};

use hlorank_proto::FILE_DESCRIPTOR_SET;
use metrics::{Counter, Histogram};
use prost_types::FileDescriptorSet;
use tonic::Code;

use super::{Family, ModelSeries, NO_MODEL, Recorder};
use crate::service::REASONS;

const REQUESTS: Family<Counter, 3> = Family::new(
    "hlorank_requests_total",
    ["method", "model", "code"],
    "Calls that ended, by gRPC status; CANCELLED also where the client went away. The model is none for methods \
     without one and for calls that ended before theirs was selected",
);

const SECONDS: Family<Histogram, 2> = Family::new(
    "hlorank_request_duration_seconds",
    ["method", "model"],
    "From the headers of a call to the end of its answer, messages and streams included",
);

const ERRORS: Family<Counter, 1> = Family::new(
    "hlorank_errors_total",
    ["reason"],
    "Calls that were refused or failed, by the reason in their ErrorInfo; OTHER for any that is not listed",
);

/// The package of our services.
const PACKAGE: &str = "hlorank.v1";

/// Methods whose calls each select a model.
pub(super) const RANKING: [&str; 2] = ["RankConfigs", "RankConfigsStream"];

/// The value of the label `reason` for one that is not in [`REASONS`].
const OTHER: &str = "OTHER";

/// gRPC status codes in the order of their numbers.
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

/// The methods of our services, and why calls of them fail.
pub struct Methods {
    by_path: HashMap<String, Arc<Method>>,
    errors: HashMap<&'static str, Counter>,
}

/// A method.
pub struct Method {
    /// As in `hlorank.v1.CostModelService`.
    pub service: String,
    /// As in `PutGraph`.
    pub name: String,
    without_model: CallSeries,
}

/// Calls of one method that selected one model, or none.
pub struct CallSeries {
    /// By the number of the code.
    codes: [Counter; CODES.len()],
    seconds: Histogram,
}

/// The name of a gRPC status code, as in the specification.
#[must_use]
pub fn code_name(code: Code) -> &'static str {
    CODES[code as usize]
}

impl Methods {
    pub(super) fn new(recorder: &Recorder) -> Self {
        let methods = methods().into_iter().map(|(service, name)| {
            let (path, without_model) =
                (format!("/{service}/{name}"), CallSeries::new(recorder, &name, NO_MODEL));
            (path, Arc::new(Method { service, name, without_model }))
        });
        let reasons = REASONS.into_iter().chain([OTHER]);
        Self {
            by_path: methods.collect(),
            errors: reasons.map(|reason| (reason, ERRORS.series(recorder, [reason]))).collect(),
        }
    }

    /// The method at a path such as `/hlorank.v1.CostModelService/PutGraph`, if it is ours.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Arc<Method>> {
        self.by_path.get(path).cloned()
    }

    /// Counts a call that ended, about the model that it selected; a failure may have a reason.
    pub fn ended(
        &self,
        method: &Method,
        model: Option<&ModelSeries>,
        code: Code,
        reason: Option<&str>,
        took: Duration,
    ) {
        let of_model = model.and_then(|model| model.calls(&method.name));
        of_model.unwrap_or(&method.without_model).ended(code, took);
        if let Some(reason) = reason
            && let Some(counter) = self.errors.get(reason).or_else(|| self.errors.get(OTHER))
        {
            counter.increment(1);
        }
    }
}

/// Every method of our services, after the name of its service.
fn methods() -> Vec<(String, String)> {
    let descriptors: FileDescriptorSet =
        prost::Message::decode(FILE_DESCRIPTOR_SET).expect("the descriptors were built in");
    let files = descriptors.file.iter().filter(|file| file.package() == PACKAGE);
    let services = files.flat_map(|file| &file.service);
    let methods = services.flat_map(|service| service.method.iter().map(move |method| (service, method)));
    let service_name = |service: &str| format!("{PACKAGE}.{service}");
    methods.map(|(service, method)| (service_name(service.name()), method.name().to_owned())).collect()
}

impl CallSeries {
    pub(super) fn new(recorder: &Recorder, method: &str, model: &str) -> Self {
        Self {
            codes: CODES.map(|code| REQUESTS.series(recorder, [method, model, code])),
            seconds: SECONDS.series(recorder, [method, model]),
        }
    }

    fn ended(&self, code: Code, took: Duration) {
        self.codes[code as usize].increment(1);
        self.seconds.record(took);
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

    #[test]
    fn methods_that_select_a_model_are_there() {
        let names: Vec<String> = methods().into_iter().map(|(_, name)| name).collect();
        assert!(RANKING.iter().all(|ranking| names.iter().any(|name| name == ranking)), "{names:?}");
    }
}
