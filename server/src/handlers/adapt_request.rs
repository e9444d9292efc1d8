//! Reads the measurements of a request, and writes what they taught.

use std::mem::take;

use hlorank_proto::{
    received::Adapt,
    v1::{self, MeasurementFailure},
};

use super::{CostModel, answer::count};
use crate::{
    adaptation::{Basis, PoolBasis, PoolRefusal, SourceRefusal},
    call::{
        ADAPT, CallError, Client, MeasurementError, MeasurementFields, SentMeasurements, SentTimes,
    },
    errors::ServiceError,
    learning::{
        Adaptation, Expectation, MAX_OTHER_TARGETS, OtherTargets, ReporterShare, TargetSource,
        WantedMeasurements,
    },
    session::{Assessment, Query},
};

/// Maximum length of a target's name.
const MAX_TARGET_BYTES: usize = 256;

impl CostModel {
    /// Has a call learn from its measurements, if it has some.
    pub(super) async fn adapt(
        &self,
        query: Query,
        adapt: Option<Adapt>,
    ) -> Result<Query, ServiceError> {
        let Some(mut adapt) = adapt else {
            return Ok(query);
        };
        let sent = self.measurements(&mut adapt).await?;
        Ok(query.adapted(&self.learning, sent, wanted(adapt)).await?)
    }

    /// Takes the measurements out of a request, and checks them.
    async fn measurements(&self, adapt: &mut Adapt) -> Result<SentMeasurements, ServiceError> {
        let times = take_times(adapt);
        // All that is cheap to check comes before the batch, which takes milliseconds to decode.
        check_measurements(&ADAPT, &adapt.target, &times)?;
        check_other_targets(&adapt.other_targets)?;
        let batch = match adapt.batch.take() {
            Some(batch) => self.decoder.batch(ADAPT.batch, batch).await?,
            // A call without measurements can still learn from those that are stored.
            None => None,
        };
        let sent = SentMeasurements::new(&ADAPT, take(&mut adapt.target), batch, &times);
        Ok(sent.map_err(CallError::from)?)
    }
}

/// Reads what to learn from beside the measurements of a request.
fn wanted(adapt: Adapt) -> WantedMeasurements {
    let others = if adapt.all_other_targets {
        OtherTargets::All
    } else {
        OtherTargets::Named(adapt.other_targets)
    };
    WantedMeasurements {
        stored: adapt.use_stored,
        others,
        own_only: adapt.own_only,
    }
}

/// Takes what a request says of each of its measurements.
pub(super) fn take_times(adapt: &mut Adapt) -> SentTimes {
    SentTimes {
        seconds: take(&mut adapt.seconds),
        repeats: take(&mut adapt.repeats),
        failures: take(&mut adapt.failures),
        ids: take(&mut adapt.ids),
    }
}

/// Checks what belongs to measurements beside their configurations and numbers.
pub(super) fn check_measurements(
    fields: &MeasurementFields,
    target: &str,
    times: &SentTimes,
) -> Result<(), ServiceError> {
    check_target(fields.target, target)?;
    for (index, &failure) in times.failures.iter().enumerate() {
        check_failure(fields.failures, index, failure)?;
    }
    Ok(())
}

/// Checks that a target is named.
pub(super) fn check_target(field: &'static str, target: &str) -> Result<(), ServiceError> {
    if target.is_empty() {
        let hint = "name the hardware, compiler and flags that the times were measured with";
        return Err(ServiceError::missing(field, hint));
    }
    check_target_length(field, target)
}

/// Checks the length of a target's name.
pub(super) fn check_target_length(field: &'static str, target: &str) -> Result<(), ServiceError> {
    let bytes = target.len();
    if bytes > MAX_TARGET_BYTES {
        return Err(ServiceError::too_long(field, bytes, MAX_TARGET_BYTES));
    }
    Ok(())
}

/// Checks the names of other targets.
pub(super) fn check_other_targets(targets: &[String]) -> Result<(), ServiceError> {
    const FIELD: &str = "adapt.other_targets";
    if targets.len() > MAX_OTHER_TARGETS {
        let found = format!("{} targets", targets.len());
        let expected = format!("at most {MAX_OTHER_TARGETS}");
        return Err(ServiceError::invalid(FIELD, found, expected));
    }
    targets
        .iter()
        .try_for_each(|target| check_target(FIELD, target))
}

fn check_failure(field: &'static str, index: usize, failure: i32) -> Result<(), CallError> {
    let known = MeasurementFailure::try_from(failure).map(drop);
    known.map_err(|_| {
        let found = failure.to_string();
        let expected = "a MeasurementFailure";
        let refused = MeasurementError::OutOfRange {
            field,
            index,
            found,
            expected,
        };
        refused.into()
    })
}

/// Writes how far a ranking can be trusted, if something tells that.
pub(super) fn confidence(assessment: &Assessment) -> Option<v1::Confidence> {
    let expected = assessment.expected;
    let (low, high) = expected.map(|expected| expected.interval()).unzip();
    let is_known = expected.is_some() || assessment.unknown_opcodes > 0;
    is_known.then(|| v1::Confidence {
        expected_tau: expected.map(|expected| expected.tau),
        expected_tau_low: low,
        expected_tau_high: high,
        unknown_opcodes: count(assessment.unknown_opcodes),
    })
}

/// Writes what predictions rest on, if the call asked to learn.
pub(super) fn adaptation_of(query: &Query) -> Option<v1::Adaptation> {
    let lesson = query.lesson.as_ref()?;
    let has_model = query.model.is_present();
    Some(adaptation(
        lesson.adaptation(),
        has_model,
        &query.call.client,
    ))
}

fn adaptation(adaptation: Adaptation, has_model: bool, client: &Client) -> v1::Adaptation {
    let reporters = adaptation.reporters.iter();
    let rests_on = rests_on(&adaptation, has_model).map(i32::from);
    v1::Adaptation {
        target: adaptation.target,
        measured_configs: count(adaptation.measured),
        stored_measurements: count(adaptation.stored),
        pool: adaptation.pool.map(|basis| pool(&basis)),
        reporters: reporters.map(|share| reporter(share, client)).collect(),
        sources: adaptation.sources.into_iter().map(source).collect(),
        rests_on: rests_on.collect(),
        // Without a basis the scores are the model's own, and `adapted` stays false.
        ..adaptation.basis.map(learned).unwrap_or_default()
    }
}

/// Describes what was learned from the call's graph and target.
fn learned(basis: Basis) -> v1::Adaptation {
    v1::Adaptation {
        adapted: true,
        learned_configs: count(basis.learned),
        noise: basis.noise,
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        ..v1::Adaptation::default()
    }
}

fn rests_on(
    adaptation: &Adaptation,
    has_model: bool,
) -> impl Iterator<Item = v1::Evidence> + use<> {
    let is_adapted = adaptation.basis.is_some();
    let evidence = [
        has_model.then_some(v1::Evidence::Model),
        is_adapted.then_some(v1::Evidence::Measurements),
        adaptation.expectation.as_ref().map(v1::Evidence::from),
    ];
    evidence.into_iter().flatten()
}

impl From<&Expectation> for v1::Evidence {
    fn from(expectation: &Expectation) -> Self {
        match expectation {
            Expectation::OfKernels(_) => Self::OtherKernels,
            Expectation::OfTargets(_) => Self::OtherTargets,
        }
    }
}

fn source(source: TargetSource) -> v1::TargetSource {
    let basis = source.basis;
    let refusal = basis.refusal.map(v1::SourceRefusal::from);
    v1::TargetSource {
        target: source.target,
        measured_configs: count(basis.measured),
        used: refusal.is_none(),
        agreement: basis.agreement,
        refusal: refusal.unwrap_or_default().into(),
    }
}

impl From<SourceRefusal> for v1::SourceRefusal {
    fn from(refusal: SourceRefusal) -> Self {
        match refusal {
            SourceRefusal::TooFewMeasurements => Self::TooFewMeasurements,
            SourceRefusal::UnlikeOthers => Self::UnlikeOthers,
            SourceRefusal::Contradicted => Self::Contradicted,
        }
    }
}

fn reporter(share: &ReporterShare, client: &Client) -> v1::Reporter {
    v1::Reporter {
        reporter: client.shown(&share.reporter).to_owned(),
        measured_configs: count(share.measured),
        shared_configs: count(share.shared()),
        times_differ_by: share.times_differ_by(),
    }
}

fn pool(basis: &PoolBasis) -> v1::Pool {
    let refusal = basis.refusal.map(v1::PoolRefusal::from);
    v1::Pool {
        graphs: count(basis.graphs),
        measured_configs: count(basis.measured),
        used: refusal.is_none(),
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        refusal: refusal.unwrap_or_default().into(),
    }
}

impl From<PoolRefusal> for v1::PoolRefusal {
    fn from(refusal: PoolRefusal) -> Self {
        match refusal {
            PoolRefusal::TooFewKernels => Self::TooFewKernels,
            PoolRefusal::NoBetterThanModel => Self::NoBetterThanModel,
            PoolRefusal::NoBetterThanChance => Self::NoBetterThanChance,
        }
    }
}
