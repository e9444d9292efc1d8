//! Reads the measurements of a request, and writes what they taught.

use hlorank_proto::{
    received::Adapt,
    v1::{self, MeasurementFailure},
};

use super::{CostModel, ServiceError};
use crate::{
    adaptation::{PoolBasis, PoolRefusal, SourceBasis, SourceRefusal},
    call::{ADAPT, CallError, MeasurementError, MeasurementFields, SentMeasurements, SentTimes},
    learning::{
        Adaptation, Contradiction, Expectation, MAX_OTHER_TARGETS, OtherTargets, TargetSource,
        WantedMeasurements,
    },
    session::{Assessment, Session},
    store::Reporter,
};

/// Maximum length of a target's name.
const MAX_TARGET_BYTES: usize = 256;

impl CostModel {
    /// Has a session learn from the measurements of its call, if it has some.
    pub(super) async fn adapt(
        &self,
        session: &mut Session,
        adapt: Option<Adapt>,
    ) -> Result<(), ServiceError> {
        let Some(adapt) = adapt else {
            return Ok(());
        };
        let times = SentTimes {
            seconds: adapt.seconds,
            repeats: adapt.repeats,
            failures: adapt.failures,
            ids: adapt.ids,
        };
        check_measurements(&ADAPT, &adapt.target, &times)?;
        check_other_targets(&adapt.other_targets)?;
        let batch = match adapt.batch {
            Some(batch) => self.decoder.batch(batch).await?,
            None => None,
        };
        let sent = SentMeasurements::new(&ADAPT, adapt.target, batch, &times);
        let sent = sent.map_err(CallError::from)?;
        let others = if adapt.all_other_targets {
            OtherTargets::All
        } else {
            OtherTargets::Named(adapt.other_targets)
        };
        let wanted = WantedMeasurements {
            stored: adapt.use_stored,
            others,
            own_only: adapt.own_only,
        };
        let lesson = self.learning.learn(session.learner(), sent, wanted).await?;
        session.adapt_to(lesson);
        Ok(())
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
        return Err(ServiceError::Missing { field, hint });
    }
    check_target_length(field, target)
}

/// Checks the length of a target's name.
pub(super) fn check_target_length(field: &'static str, target: &str) -> Result<(), ServiceError> {
    let bytes = target.len();
    if bytes <= MAX_TARGET_BYTES {
        return Ok(());
    }
    Err(ServiceError::Invalid {
        field,
        found: format!("{bytes} bytes long"),
        expected: format!("at most {MAX_TARGET_BYTES} bytes"),
    })
}

/// Checks the names of other targets.
pub(super) fn check_other_targets(targets: &[String]) -> Result<(), ServiceError> {
    const FIELD: &str = "adapt.other_targets";
    if targets.len() > MAX_OTHER_TARGETS {
        return Err(ServiceError::Invalid {
            field: FIELD,
            found: format!("{} targets", targets.len()),
            expected: format!("at most {MAX_OTHER_TARGETS}"),
        });
    }
    targets
        .iter()
        .try_for_each(|target| check_target(FIELD, target))
}

fn check_failure(field: &'static str, index: usize, failure: i32) -> Result<(), CallError> {
    let found = failure.to_string();
    let expected = "a MeasurementFailure";
    let refused = |_| MeasurementError::OutOfRange {
        field,
        index,
        found,
        expected,
    };
    MeasurementFailure::try_from(failure).map_err(refused)?;
    Ok(())
}

/// Writes how far a ranking can be trusted, if that is known or was asked.
pub(super) fn confidence(assessment: Assessment, is_asked: bool) -> Option<v1::Confidence> {
    let is_known = assessment.confidence.expected.is_some();
    (is_known || is_asked).then(|| written(assessment))
}

fn written(assessment: Assessment) -> v1::Confidence {
    let Assessment {
        confidence,
        other_model,
        unknown_opcodes,
    } = assessment;
    let expected = confidence.expected;
    let interval = expected.map(|expected| expected.interval());
    v1::Confidence {
        expected_tau: expected.map(|expected| expected.tau),
        expected_tau_low: interval.map(|(low, _)| low),
        expected_tau_high: interval.map(|(_, high)| high),
        unknown_opcodes: number(unknown_opcodes),
        model_agreement: confidence.agreement,
        other_model: other_model.unwrap_or_default(),
        measure_first: confidence.measure_first,
    }
}

/// Writes what the predictions of a session rest on, if its call asked to learn.
pub(super) fn adaptation_of(session: &Session) -> Option<v1::Adaptation> {
    let has_model = session.model().is_present();
    session
        .adaptation()
        .map(|adapted| adaptation(adapted, has_model))
}

fn adaptation(adaptation: Adaptation, has_model: bool) -> v1::Adaptation {
    let rests_on = rests_on(&adaptation, has_model);
    let contradictions = adaptation.contradictions.into_iter().map(contradiction);
    let unadapted = v1::Adaptation {
        target: adaptation.target,
        measured_configs: number(adaptation.measured),
        stored_measurements: number(adaptation.stored),
        pool: adaptation.pool.map(|basis| pool(&basis)),
        contradictions: contradictions.collect(),
        sources: adaptation.sources.into_iter().map(source).collect(),
        rests_on: rests_on.map(i32::from).collect(),
        ..v1::Adaptation::default()
    };
    let Some(basis) = adaptation.basis else {
        return unadapted;
    };
    v1::Adaptation {
        adapted: true,
        learned_configs: number(basis.learned),
        trust: basis.trust,
        noise: basis.noise,
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        ..unadapted
    }
}

fn rests_on(
    adaptation: &Adaptation,
    has_model: bool,
) -> impl Iterator<Item = v1::Evidence> + use<> {
    let model = has_model.then_some(v1::Evidence::Model);
    let is_adapted = adaptation.basis.is_some();
    let measurements = is_adapted.then_some(v1::Evidence::Measurements);
    let others = adaptation
        .expectation
        .as_ref()
        .map(|expectation| match expectation {
            Expectation::OfKernels(_) => v1::Evidence::OtherKernels,
            Expectation::OfTargets(_) => v1::Evidence::OtherTargets,
        });
    [model, measurements, others].into_iter().flatten()
}

/// A count as messages have it.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn source(source: TargetSource) -> v1::TargetSource {
    let SourceBasis {
        measured,
        agreement,
        refusal,
    } = source.basis;
    let reason = match refusal {
        None => v1::SourceRefusal::Unspecified,
        Some(SourceRefusal::TooFewMeasurements) => v1::SourceRefusal::TooFewMeasurements,
        Some(SourceRefusal::UnlikeOthers) => v1::SourceRefusal::UnlikeOthers,
        Some(SourceRefusal::Contradicted) => v1::SourceRefusal::Contradicted,
    };
    v1::TargetSource {
        target: source.target,
        measured_configs: number(measured),
        used: refusal.is_none(),
        agreement,
        refusal: reason.into(),
    }
}

fn contradiction(contradiction: Contradiction) -> v1::Contradiction {
    let Contradiction {
        reporter,
        measured,
        agreement,
        left_out,
    } = contradiction;
    v1::Contradiction {
        reporter: reporter.as_ref().map_or("", Reporter::name).to_owned(),
        measured_configs: number(measured),
        agreement,
        left_out,
    }
}

fn pool(basis: &PoolBasis) -> v1::Pool {
    let refusal = match basis.refusal {
        None => v1::PoolRefusal::Unspecified,
        Some(PoolRefusal::TooFewKernels) => v1::PoolRefusal::TooFewKernels,
        Some(PoolRefusal::NoBetterThanModel) => v1::PoolRefusal::NoBetterThanModel,
        Some(PoolRefusal::NoBetterThanChance) => v1::PoolRefusal::NoBetterThanChance,
    };
    v1::Pool {
        graphs: number(basis.graphs),
        measured_configs: number(basis.measured),
        used: basis.refusal.is_none(),
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        refusal: refusal.into(),
    }
}
