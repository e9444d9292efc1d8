//! Reads which model a request asks for.

use hlorank_proto::{received::Adapt, v1::ModelSelector};

use super::{ServiceError, adapt_request::check_target_length};
use crate::{model::Target, registry::Wanted, session::WantedModel};

/// Returns the model that a call asks for. Its target is that of its measurements if the selector names none.
pub(super) fn wanted_model(
    selector: Option<ModelSelector>,
    adapt: Option<&Adapt>,
) -> Result<WantedModel, ServiceError> {
    let selector = selector.unwrap_or_default();
    let version = wanted(&selector)?;
    check_target_length("model.target", &selector.target)?;
    let measured = adapt.map_or("", |adapt| adapt.target.as_str());
    let target = match selector.target.as_str() {
        "" => measured,
        target => target,
    };
    Ok(WantedModel {
        name: selector.name,
        version,
        target: Target::parse(target),
    })
}

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
