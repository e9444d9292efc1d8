//! `SuggestConfigs`: which configurations of a batch to measure next.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use hlorank_adaptation::{Reason, SuggestionRequest};
use hlorank_graph::{Digest, EncodedBatch, LayoutBatch, Task};
use hlorank_proto::{
    methods::Scope,
    received::SuggestConfigsRequest,
    v1::{self, ConfigSpace, Lease, SuggestConfigsResponse, SuggestionReason, SuggestionSource},
};

use super::{
    CostModel,
    answer::{
        adaptation_of, confidence, count, reuse_counts, selector, stage_timings, timings, warnings,
        written,
    },
    leases::wanted_leases,
    request::{check_maximum, check_scope, read_hash},
};
use crate::{
    call::{Call, CallError},
    errors::ServiceError,
    leases::SearchState,
    queries::Query,
    suggestions::{
        CombinedPart, DrawnBatch, DrawnSpace, EarlierChoice, SpaceError, SuggestedConfig,
        Suggestions, suggest_from, suggest_leased,
    },
};

/// Maximum number of suggestions.
const MAX_COUNT: u32 = 64;

/// Maximum number of configurations that are being measured.
const MAX_PENDING: usize = 256;

/// What suggestions are chosen from.
enum Choices {
    /// A batch, which is still encoded, and its digest.
    Batch(EncodedBatch, Digest),
    /// A space that is too large to list.
    Space(ConfigSpace),
}

impl CostModel {
    pub(super) async fn suggest(
        &self,
        mut request: SuggestConfigsRequest,
        call: Call,
    ) -> Result<SuggestConfigsResponse, ServiceError> {
        let started = Instant::now();
        let source = read_source(request.source)?;
        let choices = if let Some(space) = request.space.take() {
            let is_alone = request.batch.is_none() && request.batch_digest.is_empty();
            if !is_alone || source.is_some() {
                let why = "a space takes the place of batch and batch_digest, with source BATCH";
                return Err(CallError::from(SpaceError::Unsupported { why }).into());
            }
            Choices::Space(space)
        } else {
            let sent = request.batch.take();
            let (batch, digest) = self.sent_batch(sent, &request.batch_digest).await?;
            Choices::Batch(batch, digest)
        };
        let (task, count) = match &choices {
            Choices::Batch(batch, _) => (batch.task(), batch.count()),
            Choices::Space(_) => (Task::FeatureSet, 0),
        };
        let mut wanted = wanted_suggestions(&request, count)?;
        let pending = request.pending_configs.unwrap_or_default().configs;
        if pending.len() > MAX_PENDING {
            let found = format!("{} long", pending.len());
            let expected = format!("at most {MAX_PENDING} configurations");
            return Err(ServiceError::invalid("pending_configs", found, expected));
        }
        let mut leases = None;
        if let Some(lease) = request.lease.take() {
            self.leases.store()?;
            // A worker takes configurations from others, and can make the server record failures.
            check_scope(&call.client, Scope::Report)?;
            if source.is_some() {
                let expected = "BATCH (1) with a lease";
                return Err(ServiceError::invalid(
                    "source",
                    request.source.to_string(),
                    expected,
                ));
            }
            // What others measured is not measured again, so that it is learned from, too.
            let adapt = request.adapt.get_or_insert_default();
            adapt.use_stored = true;
            leases = Some(wanted_leases(lease, adapt.target.clone())?);
        }
        let query = self
            .open(
                request.graph,
                request.model,
                request.adapt,
                Some(task),
                call,
            )
            .await?;
        let (batch, drawn, digest) = match choices {
            Choices::Batch(batch, digest) => {
                let batch = Arc::new(query.read(batch).await?);
                (batch, None, Some(digest))
            }
            Choices::Space(space) => {
                let space = DrawnSpace::read(space, &query)?;
                let drawn = DrawnBatch::draw(&query, space, &pending, &mut wanted).await?;
                (Arc::clone(&drawn.batch), Some(drawn), None)
            }
        };
        let Some(mut leases) = leases else {
            let decided = EarlierChoice::default();
            let mut chosen = suggest_from(&query, &batch, wanted, source, decided).await?;
            let configs = drawn.map(|drawn| drawn.named(&mut chosen.suggested));
            let answer = answer(&query, digest.as_ref(), Some(&chosen), started);
            return Ok(SuggestConfigsResponse { configs, ..answer });
        };
        leases.key.subject.graph = query.found.graph.hash;
        leases.is_listed = drawn.is_none();
        let mut given = suggest_leased(&query, &batch, wanted, &leases, &self.leases).await?;
        let (subject, graph) = (&leases.key.subject, &query.found.graph.whole);
        let count = given.leases.len();
        self.stored
            .searches
            .lease(subject, graph, &leases.worker, count);
        let configs = drawn.zip(given.chosen.as_mut());
        let configs = configs.map(|(drawn, chosen)| drawn.named(&mut chosen.suggested));
        let mut answer = answer(&query, digest.as_ref(), given.chosen.as_ref(), started);
        answer.configs = configs;
        answer.leases = given.leases.iter().map(Lease::from).collect();
        if let SearchState::AllLeased(retry) = given.state {
            answer.retry_after = written(retry);
        }
        answer.set_state(given.state.into());
        Ok(answer)
    }

    /// Returns the configurations to choose from, which are still encoded, and their digest: of the batch that was sent, or of the
    /// one that is named.
    async fn sent_batch(
        &self,
        batch: Option<Bytes>,
        digest: &[u8],
    ) -> Result<(EncodedBatch, Digest), ServiceError> {
        if let (None, false) = (&batch, digest.is_empty()) {
            let digest = read_hash("batch_digest", digest)?;
            let batch = self.graphs.batch(digest).await?;
            return Ok((self.batch(Some(batch)).await?, digest));
        }
        let sent = batch.clone().unwrap_or_default();
        let batch = self.batch(batch).await?;
        Ok((batch, self.graphs.keep_batch(sent).await?))
    }
}

/// Writes an answer, without what concerns leases. Without a choice, nothing was scored.
fn answer(
    query: &Query,
    digest: Option<&Digest>,
    chosen: Option<&Suggestions>,
    started: Instant,
) -> SuggestConfigsResponse {
    let answer = SuggestConfigsResponse {
        model: Some(selector(&query.model)),
        graph_hash: query.found.graph.hash.0.to_vec().into(),
        batch_digest: digest.map_or_else(Bytes::new, |digest| digest.0.to_vec().into()),
        adaptation: adaptation_of(query),
        ..SuggestConfigsResponse::default()
    };
    let Some(chosen) = chosen else {
        return SuggestConfigsResponse {
            warnings: warnings(query, None),
            ..answer
        };
    };
    let timings = timings(query, &chosen.scored, started);
    query.record_scored(&timings);
    let assessment = query.assess(&chosen.scored);
    SuggestConfigsResponse {
        suggestions: chosen.suggested.iter().map(suggestion).collect(),
        combinations: chosen.combinations.as_ref().map(LayoutBatch::to_packed),
        reuse: Some(reuse_counts(chosen.scored.reuse())),
        timings: Some(stage_timings(timings)),
        warnings: warnings(query, Some((&chosen.scored, &assessment))),
        confidence: confidence(&assessment),
        ..answer
    }
}

impl From<SearchState> for v1::SearchState {
    fn from(state: SearchState) -> Self {
        match state {
            SearchState::Running => Self::Running,
            SearchState::AllLeased(_) => Self::AllLeased,
            SearchState::Exhausted => Self::Exhausted,
            SearchState::BudgetSpent => Self::BudgetSpent,
            SearchState::Decided => Self::Decided,
        }
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
        reason: reason(suggestion.reason).into(),
        score,
        predicted_seconds: suggested.deviation.map_or(0.0, seconds),
        log_sd: suggested.deviation.map_or(0.0, |sd| sd as f32),
        expected_improvement: suggestion.improvement as f32,
    }
}

/// Writes why a configuration is suggested.
const fn reason(reason: Reason) -> SuggestionReason {
    match reason {
        Reason::Model => SuggestionReason::Model,
        Reason::ExpectedImprovement => SuggestionReason::ExpectedImprovement,
        Reason::Random => SuggestionReason::Random,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_suggested_by_default() {
        let request = SuggestConfigsRequest {
            pending: vec![1],
            ..SuggestConfigsRequest::default()
        };
        assert_eq!(wanted_suggestions(&request, 2).unwrap().count, 1);
    }
}
