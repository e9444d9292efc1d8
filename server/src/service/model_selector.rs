//! Reads which model a request names.

use hlorank_proto::v1::ModelSelector;

use super::ServiceError;
use crate::registry::Wanted;

/// Returns the version of a model that a request asks for.
pub(super) fn wanted(selector: &ModelSelector) -> Result<Wanted, ServiceError> {
    let invalid = |field, found: &dyn ToString, expected: &str| {
        Err(ServiceError::Invalid {
            field,
            found: found.to_string(),
            expected: expected.to_owned(),
        })
    };
    match (selector.version, selector.label.as_str()) {
        (0, "") => Ok(Wanted::Any),
        (0, "stable") => Ok(Wanted::Stable),
        (0, "canary") => Ok(Wanted::Canary),
        (version, "") => Ok(Wanted::Version(version)),
        // The label is not quoted because it may be megabytes long.
        (0, _) => invalid(
            "model.label",
            &"an unknown label",
            "stable, canary or nothing",
        ),
        (version, _) => invalid("model.version", &version, "0 together with a label"),
    }
}
