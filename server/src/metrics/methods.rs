use std::{collections::HashMap, sync::Arc, time::Duration};

use hlorank_proto::FILE_DESCRIPTOR_SET;
use metrics::Counter;
use prost_types::FileDescriptorSet;
use tonic::Code;

use super::{calls::CallSeries, family::Family, model::ModelSeries, recorder::Recorder};

const ERRORS: Family<Counter, 1> = Family::new(
    "hlorank_errors_total",
    ["reason"],
    "Failed calls by the reason in their ErrorInfo; OTHER for a reason that is not listed",
);

/// Protobuf package of our services.
const PACKAGE: &str = "hlorank.v1";

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
    pub service: String,
    /// Name of the method, such as `PutGraph`.
    pub name: String,
    without_model: CallSeries,
}

impl Methods {
    pub(super) fn new(recorder: &Recorder, reasons: &[&'static str]) -> Self {
        let methods = methods().into_iter().map(|(service, name)| {
            let (path, without_model) = (
                format!("/{service}/{name}"),
                CallSeries::new(recorder, &name, NO_MODEL),
            );
            (
                path,
                Arc::new(Method {
                    service,
                    name,
                    without_model,
                }),
            )
        });
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

    /// Counts an ended call of the model that it selected. `reason` is that of a failed call.
    pub fn ended(
        &self,
        method: &Method,
        model: Option<&ModelSeries>,
        code: Code,
        reason: Option<&str>,
        duration: Duration,
    ) {
        let of_model = model.and_then(|model| model.calls(&method.name));
        of_model
            .unwrap_or(&method.without_model)
            .ended(code, duration);
        if let Some(reason) = reason
            && let Some(counter) = self.errors.get(reason).or_else(|| self.errors.get(OTHER))
        {
            counter.increment(1);
        }
    }
}

/// Returns the service name and the method name of each method of our services.
fn methods() -> Vec<(String, String)> {
    let descriptors: FileDescriptorSet =
        prost::Message::decode(FILE_DESCRIPTOR_SET).expect("the descriptors were built in");
    let files = descriptors
        .file
        .iter()
        .filter(|file| file.package() == PACKAGE);
    let services = files.flat_map(|file| &file.service);
    let methods =
        services.flat_map(|service| service.method.iter().map(move |method| (service, method)));
    let service_name = |service: &str| format!("{PACKAGE}.{service}");
    methods
        .map(|(service, method)| (service_name(service.name()), method.name().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::calls::RANKING, *};

    #[test]
    fn methods_that_select_a_model_exist() {
        let names: Vec<String> = methods().into_iter().map(|(_, name)| name).collect();
        assert!(
            RANKING
                .iter()
                .all(|ranking| names.iter().any(|name| name == ranking)),
            "{names:?}"
        );
    }
}
