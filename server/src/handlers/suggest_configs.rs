//! `SuggestConfigs`: which configurations of a batch to measure next.

use std::time::Instant;

use hlorank_graph::LayoutBatch;
use hlorank_proto::{
    received::SuggestConfigsRequest,
    v1::{self, SuggestConfigsResponse, SuggestionReason, SuggestionSource},
};

use super::{
    CostModel,
    answer::{
        adaptation_of, confidence, count, reuse_counts, selector, stage_timings, timings, warnings,
    },
    request::check_maximum,
};
use crate::{
    adaptation::{Reason, SuggestionRequest},
    call::Call,
    errors::ServiceError,
    suggestions::{CombinedPart, SuggestedConfig, suggest},
};

/// Maximum number of suggestions.
const MAX_COUNT: u32 = 64;

/// Maximum number of configurations that are being measured.
const MAX_PENDING: usize = 256;

impl CostModel {
    pub(super) async fn suggest(
        &self,
        mut request: SuggestConfigsRequest,
        call: Call,
    ) -> Result<SuggestConfigsResponse, ServiceError> {
        let started = Instant::now();
        let batch = self.batch(request.batch.take()).await?;
        let wanted = wanted_suggestions(&request, batch.count())?;
        let source = read_source(request.source)?;
        let task = Some(batch.task());
        let query = self
            .open(request.graph, request.model, request.adapt, task, call)
            .await?;
        let chosen = suggest(&query, batch, wanted, source).await?;
        let timings = timings(&query, &chosen.scored, started);
        query.record_scored(&timings);
        let assessment = query.assess(&chosen.scored);
        Ok(SuggestConfigsResponse {
            suggestions: chosen.suggested.iter().map(suggestion).collect(),
            combinations: chosen.combinations.as_ref().map(LayoutBatch::to_packed),
            model: Some(selector(&query.model)),
            graph_hash: query.found.graph.hash.0.to_vec().into(),
            reuse: Some(reuse_counts(chosen.scored.reuse())),
            adaptation: adaptation_of(&query),
            timings: Some(stage_timings(timings)),
            warnings: warnings(&query, Some((&chosen.scored, &assessment))),
            confidence: confidence(&assessment),
        })
    }
}

/// Checks the numbers of a request, given that of the configurations of its batch.
fn wanted_suggestions(
    request: &SuggestConfigsRequest,
    configs: usize,
) -> Result<SuggestionRequest, ServiceError> {
    check_maximum("count", request.count, MAX_COUNT)?;
    let pending = &request.pending;
    let invalid = |found, expected| ServiceError::invalid("pending", found, expected);
    if pending.len() > MAX_PENDING {
        let found = format!("{} long", pending.len());
        return Err(invalid(found, format!("at most {MAX_PENDING} numbers")));
    }
    let pending: Vec<usize> = pending.iter().map(|&config| config as usize).collect();
    if let Some(unknown) = pending.iter().find(|config| **config >= configs) {
        let expected = format!("numbers of the {configs} configurations of the batch, from 0");
        return Err(invalid(unknown.to_string(), expected));
    }
    Ok(SuggestionRequest {
        // A count that is not set is 0.
        count: request.count.max(1) as usize,
        pending,
        since_improvement: request.since_improvement,
        seed: request.seed,
    })
}

/// What to combine; `None` to choose from the batch itself.
fn read_source(source: i32) -> Result<Option<CombinedPart>, ServiceError> {
    match SuggestionSource::try_from(source) {
        Ok(SuggestionSource::Unspecified | SuggestionSource::Batch) => Ok(None),
        Ok(SuggestionSource::Segments) => Ok(Some(CombinedPart::Segments)),
        Ok(SuggestionSource::Nodes) => Ok(Some(CombinedPart::Nodes)),
        Err(other) => {
            let found = other.0.to_string();
            let expected = "BATCH (1), SEGMENTS (2) or NODES (3)";
            Err(ServiceError::invalid("source", found, expected))
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
fn suggestion(suggested: &SuggestedConfig) -> v1::Suggestion {
    let suggestion = &suggested.suggestion;
    let score = suggested.score;
    // Only an adapted score, which has a deviation, is the logarithm of a time.
    let seconds = |_| libm::exp(score.into()) as f32;
    v1::Suggestion {
        config: count(suggestion.config),
        reason: SuggestionReason::from(suggestion.reason).into(),
        score,
        predicted_seconds: suggested.deviation.map_or(0.0, seconds),
        log_sd: suggested.deviation.map_or(0.0, |sd| sd as f32),
        expected_improvement: suggestion.improvement as f32,
    }
}

impl From<Reason> for SuggestionReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Model => Self::Model,
            Reason::ExpectedImprovement => Self::ExpectedImprovement,
            Reason::Random => Self::Random,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(
        count: u32,
        pending: &[u32],
        configs: usize,
    ) -> Result<SuggestionRequest, ServiceError> {
        let request = SuggestConfigsRequest {
            count,
            pending: pending.to_vec(),
            ..SuggestConfigsRequest::default()
        };
        wanted_suggestions(&request, configs)
    }

    #[test]
    fn one_is_suggested_by_default() {
        assert_eq!(wanted(0, &[1], 2).unwrap().count, 1);
        assert_eq!(wanted(64, &[], 1).unwrap().count, 64);
    }

    #[test]
    fn what_is_too_much_or_unknown_is_named() {
        let refusal = |count, pending: &[u32]| wanted(count, pending, 5).unwrap_err().to_string();
        assert!(refusal(65, &[]).contains("count is 65, expected at most 64"));
        assert!(
            refusal(1, &[4, 5]).contains("pending is 5, expected numbers of the 5 configurations")
        );
        assert!(refusal(1, &[0; 257]).contains("pending is 257 long"));
    }
}
