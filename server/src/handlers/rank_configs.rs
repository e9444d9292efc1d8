//! `RankConfigs`: one batch of configurations, ranked.

use std::time::Instant;

use hlorank_graph::EncodedBatch;
use hlorank_proto::{
    received::RankConfigsRequest,
    v1::{ConfigKernels, RankConfigsResponse},
};

use super::{
    CostModel,
    adapt_request::{adaptation_of, confidence},
    answer::{
        config_kernels, count, reuse_counts, selector, stage_timings, timings, unit_of, warnings,
    },
};
use crate::{
    call::{Call, CallError},
    errors::ServiceError,
    outcome::Timings,
    session::{ScoredBatch, Session, answer_bytes},
};

/// Maximum number of configurations whose kernels an answer has.
const MAX_EXPLAINED: u32 = 16;

impl CostModel {
    pub(super) async fn rank(
        &self,
        request: RankConfigsRequest,
        call: Call,
    ) -> Result<RankConfigsResponse, ServiceError> {
        let started = Instant::now();
        let batch = self.batch(request.batch).await?;
        let task = batch.task();
        let opened = self.open(request.graph, request.model, request.adapt, task, call);
        let (found, session) = opened.await?;
        let mut session = session.ranking(request.top_k);
        let explained = read_explain_top(request.explain_top)?;
        // Kernels evaluate configurations again after they are ranked.
        if explained > 0 {
            session.keep_batch();
        }
        let outcome = score(&mut session, batch, request.allow_partial).await?;
        let answer = answer(&mut session, &outcome, explained);
        let mut answer = answer.await?;
        let timings = timings(&found, &outcome, started);
        // What is not sent does not count in the memory of the answer.
        if !request.include_scores {
            answer.scores = Vec::new();
        }
        complete(&answer, &timings, &session);
        Ok(RankConfigsResponse {
            timings: Some(stage_timings(timings)),
            warnings: warnings(found.warnings, &mut session),
            ..answer
        })
    }
}

/// Ranks what was scored, and writes what follows from it, such as the kernels of the first `explained` configurations.
async fn answer(
    session: &mut Session,
    outcome: &ScoredBatch,
    explained: usize,
) -> Result<RankConfigsResponse, ServiceError> {
    // The ranking takes the scores, which the assessment looks at.
    let assessment = session.assess();
    let ranked = session.rank().await?;
    let kernels = explain(session, &ranked.order, explained).await?;
    Ok(RankConfigsResponse {
        ranking: ranked.order,
        ranking_scores: ranked.ordered_scores,
        scores: ranked.scores,
        model: Some(selector(session.model())),
        graph_hash: session.graph().hash.0.to_vec().into(),
        reuse: Some(reuse_counts(outcome.reuse)),
        scored_configs: count(outcome.configs),
        predicted_seconds: ranked.predicted_seconds,
        log_sd: ranked.log_sd,
        adaptation: adaptation_of(session),
        unit: unit_of(session).into(),
        kernels,
        confidence: confidence(&assessment),
        ..RankConfigsResponse::default()
    })
}

async fn score(
    session: &mut Session,
    batch: EncodedBatch,
    allows_partial: bool,
) -> Result<ScoredBatch, CallError> {
    if allows_partial {
        session.score_in_time(batch).await
    } else {
        session.score(batch).await
    }
}

/// Records a call, and releases what it holds beside the memory of its answer.
fn complete(answer: &RankConfigsResponse, timings: &Timings, session: &Session) {
    session.record_scored(timings);
    session.record_ranked(timings);
    // A configuration of the ranking has a number and a score, and its deviation if it has one,
    // which counts like another.
    let values = answer.ranking.len() + answer.log_sd.len();
    let bytes = answer_bytes(values, answer.scores.len());
    session.call().place.hold_only(bytes);
}

/// Returns the kernels of the first `count` configurations of a ranking.
async fn explain(
    session: &Session,
    ranking: &[u32],
    count: usize,
) -> Result<Vec<ConfigKernels>, ServiceError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let best = &ranking[..count.min(ranking.len())];
    let kernels = session.explain(best).await?;
    Ok(kernels.into_iter().map(config_kernels).collect())
}

fn read_explain_top(configs: u32) -> Result<usize, ServiceError> {
    if configs > MAX_EXPLAINED {
        let expected = format!("at most {MAX_EXPLAINED}");
        let found = configs.to_string();
        return Err(ServiceError::invalid("explain_top", found, expected));
    }
    Ok(configs as usize)
}
