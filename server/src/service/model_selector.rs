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
    // The measurements of a call are of the target that its configurations are chosen for, so a
    // client need not name it twice.
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
    match (selector.version, selector.label.as_str()) {
        (0, "") => Ok(Wanted::Any),
        (0, label) => labelled(label),
        (version, "") => Ok(Wanted::Version(version)),
        (version, _) => {
            let found = version.to_string();
            let expected = "0 together with a label";
            Err(ServiceError::invalid("model.version", found, expected))
        }
    }
}

fn labelled(label: &str) -> Result<Wanted, ServiceError> {
    match label {
        "stable" => Ok(Wanted::Stable),
        "canary" => Ok(Wanted::Canary),
        // The label is not quoted because it may be megabytes long.
        _ => {
            let found = "an unknown label";
            let expected = "stable, canary or nothing";
            Err(ServiceError::invalid("model.label", found, expected))
        }
    }
}
