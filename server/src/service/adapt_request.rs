//! Reads the measurements of a request, and writes what they taught.

use hlorank_proto::{
    received::Adapt,
    v1::{self, MeasurementFailure},
};

use super::ServiceError;
use crate::session::{Adaptation, MeasurementError, SentMeasurements, SentTimes, SessionError, Sessions};

/// Maximum length of a target's name.
const MAX_TARGET_BYTES: usize = 256;

/// Reads and checks measurements, whose configurations stay encoded.
pub(super) async fn read_measurements(
    sessions: &Sessions,
    adapt: Adapt,
) -> Result<SentMeasurements, ServiceError> {
    check_target(&adapt.target)?;
    let failures = adapt.failures.iter().enumerate();
    let failed = failures.map(|(index, &failure)| read_failure(index, failure)).collect::<Result<_, _>>()?;
    let batch = match adapt.batch {
        Some(batch) => sessions.batch(batch).await?,
        None => None,
    };
    let times = SentTimes { seconds: adapt.seconds, repeats: adapt.repeats, failed };
    Ok(SentMeasurements::new(adapt.target, batch, &times).map_err(SessionError::from)?)
}

fn check_target(target: &str) -> Result<(), ServiceError> {
    match target.len() {
        0 => {
            let hint = "name the hardware, compiler and flags that the times were measured with";
            Err(ServiceError::Missing { field: "adapt.target", hint })
        }
        1..=MAX_TARGET_BYTES => Ok(()),
        bytes => Err(ServiceError::Invalid {
            field: "adapt.target",
            found: format!("{bytes} bytes long"),
            expected: format!("at most {MAX_TARGET_BYTES} bytes"),
        }),
    }
}

fn read_failure(index: usize, failure: i32) -> Result<bool, SessionError> {
    let known = MeasurementFailure::try_from(failure);
    let refused = |_| MeasurementError::OutOfRange {
        field: "adapt.failures",
        index,
        found: failure.to_string(),
        expected: "a MeasurementFailure",
    };
    Ok(known.map_err(refused)? != MeasurementFailure::Unspecified)
}

/// Writes what predictions rest on.
pub(super) fn adaptation(adaptation: Adaptation) -> v1::Adaptation {
    let Adaptation { target, measured, basis } = adaptation;
    let measured_configs = u32::try_from(measured).unwrap_or(u32::MAX);
    let nothing = v1::Adaptation { target, measured_configs, ..v1::Adaptation::default() };
    let Some(basis) = basis else { return nothing };
    v1::Adaptation {
        adapted: true,
        trust: basis.trust,
        noise: basis.noise,
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        ..nothing
    }
}
