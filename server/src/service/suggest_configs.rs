//! `SuggestConfigs`: which configurations of a batch to measure next.

use std::time::Instant;

use hlorank_graph::LayoutBatch;
use hlorank_proto::{
    received::SuggestConfigsRequest,
    v1::{self, SuggestConfigsResponse, SuggestionReason, SuggestionSource},
};

use super::{
    CostModel, ServiceError,
    adapt_request::{adaptation_of, confidence},
    answer::{reuse_counts, selector, stage_timings, warnings},
    model_selector::wanted_model,
};
use crate::{
    adaptation::{Reason, SuggestionRequest},
    call::Call,
    outcome::Timings,
    session::Session,
    suggestions::{CombinedPart, SuggestedConfig, Suggestions, suggest},
};

/// Maximum number of suggestions.
const MAX_COUNT: u32 = 64;

/// Maximum number of configurations that are being measured.
const MAX_PENDING: usize = 256;

/// What a request asks for, as it was sent.
#[derive(Default)]
struct Wanted {
    count: u32,
    since_improvement: u32,
    pending: Vec<u32>,
    seed: u64,
}

impl CostModel {
    pub(super) async fn suggest(
        &self,
        request: SuggestConfigsRequest,
        call: Call,
    ) -> Result<SuggestConfigsResponse, ServiceError> {
        let started = Instant::now();
        let wanted = Wanted {
            count: request.count,
            since_improvement: request.since_improvement,
            pending: request.pending,
            seed: request.seed,
        };
        let batch = self.batch(request.batch).await?;
        let wanted = wanted.read(batch.count())?;
        let source = read_source(request.source)?;
        let wanted_model = wanted_model(request.model, request.adapt.as_ref())?;
        let task = batch.task();
        let found = self.find(request.graph, &wanted_model, task, &call.record);
        let (found, model) = found.await?;
        let mut session = self.sessions.open(call, model, &found)?;
        self.adapt(&mut session, request.adapt).await?;
        let suggestions = suggest(&mut session, batch, wanted, source).await?;
        let timings = Timings {
            featurize: found.featurize,
            total: started.elapsed(),
            ..suggestions.scored.timings()
        };
        session.record_scored(&timings);
        let assessment = session.assess(None).await?;
        let warnings = warnings(found.warnings, &mut session);
        Ok(SuggestConfigsResponse {
            timings: Some(stage_timings(timings)),
            warnings,
            confidence: confidence(assessment, false),
            ..response(&session, &suggestions)
        })
    }
}

/// Writes the suggestions of a session, and what they rest on.
fn response(session: &Session, suggestions: &Suggestions) -> SuggestConfigsResponse {
    let combinations = suggestions.combinations.as_ref();
    SuggestConfigsResponse {
        suggestions: suggestions.suggested.iter().map(suggestion).collect(),
        model: Some(selector(session.model())),
        graph_hash: session.graph().hash.0.to_vec().into(),
        reuse: Some(reuse_counts(suggestions.scored.reuse)),
        adaptation: adaptation_of(session),
        combinations: combinations.map(LayoutBatch::to_packed),
        ..SuggestConfigsResponse::default()
    }
}

impl Wanted {
    /// Checks the numbers, given that of the configurations of the batch.
    fn read(self, configs: usize) -> Result<SuggestionRequest, ServiceError> {
        let Self { count, pending, .. } = self;
        if count > MAX_COUNT {
            return invalid("count", count.to_string(), format!("at most {MAX_COUNT}"));
        }
        if pending.len() > MAX_PENDING {
            let found = format!("{} long", pending.len());
            return invalid("pending", found, format!("at most {MAX_PENDING} numbers"));
        }
        let pending: Vec<usize> = pending.into_iter().map(|config| config as usize).collect();
        if let Some(unknown) = pending.iter().find(|config| **config >= configs) {
            let expected = format!("numbers of the {configs} configurations of the batch, from 0");
            return invalid("pending", unknown.to_string(), expected);
        }
        Ok(SuggestionRequest {
            count: count.max(1) as usize,
            pending,
            since_improvement: self.since_improvement,
            seed: self.seed,
        })
    }
}

fn invalid<T>(field: &'static str, found: String, expected: String) -> Result<T, ServiceError> {
    Err(ServiceError::Invalid {
        field,
        found,
        expected,
    })
}

/// What to combine; `None` to choose from the batch itself.
fn read_source(source: i32) -> Result<Option<CombinedPart>, ServiceError> {
    match SuggestionSource::try_from(source) {
        Ok(SuggestionSource::Unspecified | SuggestionSource::Batch) => Ok(None),
        Ok(SuggestionSource::Segments) => Ok(Some(CombinedPart::Segments)),
        Ok(SuggestionSource::Nodes) => Ok(Some(CombinedPart::Nodes)),
        Err(unknown) => Err(ServiceError::Invalid {
            field: "source",
            found: unknown.0.to_string(),
            expected: "BATCH (1), SEGMENTS (2) or NODES (3)".to_owned(),
        }),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn suggestion(suggested: &SuggestedConfig) -> v1::Suggestion {
    let SuggestedConfig {
        suggestion,
        score,
        deviation,
    } = suggested;
    let reason = match suggestion.reason {
        Reason::Model => SuggestionReason::Model,
        Reason::ExpectedImprovement => SuggestionReason::ExpectedImprovement,
        Reason::Random => SuggestionReason::Random,
    };
    v1::Suggestion {
        config: u32::try_from(suggestion.config).unwrap_or(u32::MAX),
        reason: reason.into(),
        score: *score,
        predicted_seconds: deviation.map_or(0.0, |_| libm::exp((*score).into()) as f32),
        log_sd: deviation.map_or(0.0, |deviation| deviation as f32),
        expected_improvement: suggestion.improvement as f32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(count: u32, pending: &[u32]) -> Wanted {
        Wanted {
            count,
            pending: pending.to_vec(),
            ..Wanted::default()
        }
    }

    #[test]
    fn one_is_suggested_by_default() {
        let read = |count, pending: &[u32], configs| wanted(count, pending).read(configs).unwrap();
        assert_eq!(read(0, &[1], 2).count, 1);
        assert_eq!(read(64, &[], 1).count, 64);
    }

    #[test]
    fn what_is_too_much_or_unknown_is_named() {
        let refusal = |count, pending: &[u32]| {
            let refused = wanted(count, pending).read(5);
            refused.unwrap_err().to_string()
        };
        assert!(refusal(65, &[]).contains("count is 65, expected at most 64"));
        assert!(
            refusal(1, &[4, 5]).contains("pending is 5, expected numbers of the 5 configurations")
        );
        assert!(refusal(1, &[0; 257]).contains("pending is 257 long"));
    }
}
