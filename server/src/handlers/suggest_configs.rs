//! `SuggestConfigs`: which configurations of a batch to measure next.

use std::{mem::take, time::Instant};

use hlorank_graph::LayoutBatch;
use hlorank_proto::{
    received::SuggestConfigsRequest,
    v1::{self, SuggestConfigsResponse, SuggestionReason, SuggestionSource},
};

use super::{
    CostModel,
    adapt_request::{adaptation_of, confidence},
    answer::{count, reuse_counts, selector, stage_timings, timings, warnings},
};
use crate::{
    adaptation::{Reason, SuggestionRequest},
    call::Call,
    errors::ServiceError,
    session::Query,
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
        mut request: SuggestConfigsRequest,
        call: Call,
    ) -> Result<SuggestConfigsResponse, ServiceError> {
        let started = Instant::now();
        let wanted = Wanted::take(&mut request);
        let batch = self.batch(request.batch).await?;
        let wanted = wanted.read(batch.count())?;
        let source = read_source(request.source)?;
        let task = batch.task();
        let opened = self.open(request.graph, request.model, request.adapt, task, call);
        let (found, query) = opened.await?;
        let suggestions = suggest(&query, batch, wanted, source).await?;
        let timings = timings(&found, &suggestions.scored, started);
        query.record_scored(&timings);
        let assessment = query.assess(&suggestions.scored);
        let of_scored = Some((&suggestions.scored, &assessment));
        Ok(SuggestConfigsResponse {
            timings: Some(stage_timings(timings)),
            warnings: warnings(&found.warnings, &query, of_scored),
            confidence: confidence(&assessment),
            ..response(&query, &suggestions)
        })
    }
}

/// Writes suggestions, and what they rest on.
fn response(query: &Query, chosen: &Suggestions) -> SuggestConfigsResponse {
    SuggestConfigsResponse {
        suggestions: chosen.suggested.iter().map(suggestion).collect(),
        model: Some(selector(&query.model)),
        graph_hash: query.graph.hash.0.to_vec().into(),
        reuse: Some(reuse_counts(chosen.scored.reuse())),
        adaptation: adaptation_of(query),
        combinations: chosen.combinations.as_ref().map(LayoutBatch::to_packed),
        ..SuggestConfigsResponse::default()
    }
}

impl Wanted {
    fn take(request: &mut SuggestConfigsRequest) -> Self {
        Self {
            count: request.count,
            since_improvement: request.since_improvement,
            pending: take(&mut request.pending),
            seed: request.seed,
        }
    }

    /// Checks the numbers, given that of the configurations of the batch.
    fn read(self, configs: usize) -> Result<SuggestionRequest, ServiceError> {
        let count = self.count;
        if count > MAX_COUNT {
            let expected = format!("at most {MAX_COUNT}");
            return Err(ServiceError::invalid("count", count.to_string(), expected));
        }
        Ok(SuggestionRequest {
            // A count that is not set is 0.
            count: count.max(1) as usize,
            pending: read_pending(&self.pending, configs)?,
            since_improvement: self.since_improvement,
            seed: self.seed,
        })
    }
}

fn read_pending(pending: &[u32], configs: usize) -> Result<Vec<usize>, ServiceError> {
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
    Ok(pending)
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
