//! Writes results into the messages of an answer.

use std::time::{Duration, Instant};

use hlorank_adaptation::{Refusal, SourceKind};
use hlorank_proto::v1::{self, ModelSelector, RankConfigsResponse, ReuseCounts, StageTimings};

use crate::{
    graphs::Warning,
    learning::RelatedSource,
    model::{LoadedModel, Model, ScoreUnit},
    outcome::{Reuse, Timings},
    queries::{Assessment, Query, Ranking, ScoredCall},
};

/// What a method of a service returns.
pub(super) type Answer<T> = Result<tonic::Response<T>, tonic::Status>;

/// Writes a ranking, and the score of every configuration if asked for.
pub(super) fn ranking_answer(
    query: &Query,
    ranking: Ranking,
    timings: Timings,
    include_scores: bool,
) -> RankConfigsResponse {
    let scored = &ranking.scored;
    RankConfigsResponse {
        model: Some(selector(&query.model)),
        graph_hash: query.found.graph.hash.0.to_vec().into(),
        reuse: Some(reuse_counts(scored.reuse())),
        scored_configs: count(scored.scores().len()),
        adaptation: adaptation_of(query),
        unit: unit_of(query).into(),
        confidence: confidence(&ranking.assessment),
        timings: Some(stage_timings(timings)),
        warnings: warnings(query, Some((scored, &ranking.assessment))),
        ranking: ranking.order,
        ranking_scores: ranking.ordered_scores,
        predicted_seconds: ranking.predicted_seconds,
        log_sd: ranking.log_sd,
        scores: if include_scores {
            ranking.scored.into_scores()
        } else {
            Vec::new()
        },
        kernels: Vec::new(),
    }
}

pub(super) fn selector(model: &Model) -> ModelSelector {
    ModelSelector {
        name: model.manifest().name.clone(),
        version: model.manifest().version,
        ..ModelSelector::default()
    }
}

/// Writes a count.
pub(super) fn count(count: impl TryInto<u32>) -> u32 {
    // Limits keep all counts far below the maximum.
    count.try_into().unwrap_or(u32::MAX)
}

/// The unit of scores. Those that are adapted to measurements are logarithms of seconds, whatever the
/// model's are.
pub(super) fn unit_of(query: &Query) -> v1::ScoreUnit {
    if query.is_adapted() {
        v1::ScoreUnit::LogSeconds
    } else {
        score_unit(query.unit())
    }
}

/// Writes the unit of a model's scores.
pub(super) const fn score_unit(unit: ScoreUnit) -> v1::ScoreUnit {
    match unit {
        ScoreUnit::None => v1::ScoreUnit::Unspecified,
        ScoreUnit::Seconds => v1::ScoreUnit::Seconds,
    }
}

/// Writes what was unusual about the graph and the model, about what predictions rest on, and about what was scored.
pub(super) fn warnings(
    query: &Query,
    scored: Option<(&ScoredCall, &Assessment)>,
) -> Vec<v1::Warning> {
    let (scored, assessment) = scored.unzip();
    let unsure = assessment.and_then(|assessment| assessment.warning.clone());
    let unscored = scored.and_then(ScoredCall::warning);
    let all = query.warnings().cloned().chain(unsure).chain(unscored);
    all.map(v1::Warning::from).collect()
}

impl From<Warning> for v1::Warning {
    fn from(warning: Warning) -> Self {
        Self {
            reason: warning.reason.to_owned(),
            message: warning.message,
        }
    }
}

/// Returns the time of each stage of a call with one batch, until now.
pub(super) fn timings(query: &Query, scored: &ScoredCall, started: Instant) -> Timings {
    Timings {
        featurize: query.found.featurize,
        total: started.elapsed(),
        ..scored.timings()
    }
}

/// Writes a duration; `None` if it is longer than the wire can say.
pub(super) fn written(duration: Duration) -> Option<prost_types::Duration> {
    duration.try_into().ok()
}

/// Writes the time of each stage.
pub(super) fn stage_timings(timings: Timings) -> StageTimings {
    StageTimings {
        queue: written(timings.queue),
        featurize: written(timings.featurize),
        parse: written(timings.parse),
        encode: written(timings.encode),
        head: written(timings.head),
        rank: written(timings.rank),
        total: written(timings.total),
    }
}

pub(super) fn reuse_counts(reuse: Reuse) -> ReuseCounts {
    ReuseCounts {
        configs: reuse.configs as u64,
        distinct_configs: reuse.distinct_configs as u64,
        segment_rows: reuse.segment_rows as u64,
        distinct_segment_rows: reuse.distinct_segment_rows as u64,
        rows_evaluated: reuse.rows_evaluated as u64,
        rows_cached: reuse.rows_cached() as u64,
    }
}

/// Writes how far a ranking can be trusted, if something tells that.
pub(super) fn confidence(assessment: &Assessment) -> Option<v1::Confidence> {
    let expected = assessment.expected;
    let (low, high) = expected.map(|expected| expected.interval()).unzip();
    let slowdown = assessment.slowdown;
    let is_known = expected.is_some() || slowdown.is_some() || assessment.unknown_opcodes > 0;
    is_known.then(|| v1::Confidence {
        expected_tau: expected.map(|expected| expected.tau),
        expected_tau_low: low,
        expected_tau_high: high,
        unknown_opcodes: count(assessment.unknown_opcodes),
        expected_slowdown: slowdown.map(|slowdown| slowdown.expected),
        expected_slowdown_p90: slowdown.map(|slowdown| slowdown.upper),
    })
}

/// Writes what predictions rest on, if the call asked to learn.
pub(super) fn adaptation_of(query: &Query) -> Option<v1::Adaptation> {
    let adaptation = query.lesson.as_ref()?.adaptation.clone();
    let has_model = !matches!(query.model.loaded, LoadedModel::Absent);
    let rests_on = [
        has_model.then_some(v1::Evidence::Model),
        adaptation
            .basis
            .is_some()
            .then_some(v1::Evidence::Measurements),
        adaptation
            .expectation
            .as_ref()
            .map(|expectation| match expectation.model.kind {
                SourceKind::Instances => v1::Evidence::OtherInstances,
                SourceKind::Kernels => v1::Evidence::OtherKernels,
                SourceKind::Targets => v1::Evidence::OtherTargets,
            }),
    ];
    let reporters = adaptation.reporters.iter().map(|share| v1::Reporter {
        reporter: query.call.client.shown(&share.reporter).to_owned(),
        measured_configs: count(share.measured),
        shared_configs: count(share.shared()),
        times_differ_by: share.times_differ_by(),
    });
    // What was learned from the call's graph and target.
    let learned = adaptation.basis.map(|basis| v1::Adaptation {
        adapted: true,
        learned_configs: count(basis.learned),
        noise: basis.noise,
        leave_one_out_tau: basis.left_out_tau,
        zero_shot_tau: basis.score_tau,
        ..v1::Adaptation::default()
    });
    Some(v1::Adaptation {
        target: adaptation.target,
        measured_configs: count(adaptation.measured),
        stored_measurements: count(adaptation.stored),
        reporters: reporters.collect(),
        sources: adaptation.sources.into_iter().map(source).collect(),
        rests_on: rests_on.into_iter().flatten().map(i32::from).collect(),
        // Without a basis the scores are the model's own, and `adapted` stays false.
        ..learned.unwrap_or_default()
    })
}

fn source(
    RelatedSource {
        kind,
        target,
        basis,
    }: RelatedSource,
) -> v1::RelatedSource {
    let kind = match kind {
        SourceKind::Instances => v1::SourceKind::Instances,
        SourceKind::Kernels => v1::SourceKind::Kernels,
        SourceKind::Targets => v1::SourceKind::Target,
    };
    let refusal = basis.refusal.map(|refusal| match refusal {
        Refusal::TooFew => v1::SourceRefusal::TooFewMeasurements,
        Refusal::Contradicted => v1::SourceRefusal::Contradicted,
        Refusal::NoBetterThanChance => v1::SourceRefusal::UnlikeOthers,
        Refusal::NoBetterThanModel => v1::SourceRefusal::NoBetterThanModel,
    });
    v1::RelatedSource {
        kind: kind.into(),
        target,
        lists: count(basis.lists),
        measured_configs: count(basis.measured),
        used: refusal.is_none(),
        agreement: basis.agreement,
        model_tau: basis.score_tau,
        refusal: refusal.unwrap_or_default().into(),
    }
}
