//! `RankConfigs`: one batch of configurations, ranked.

use std::time::Instant;

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
    call::{Call, Position},
    errors::ServiceError,
    session::{Query, Ranking, Scoring, answer_bytes},
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
        let (found, query) = opened.await?;
        let explained = read_explain_top(request.explain_top)?;
        let scoring = Scoring {
            top_k: request.top_k,
            // Kernels evaluate configurations again after they are ranked.
            keeps_batch: explained > 0,
            is_partial: request.allow_partial,
        };
        let scored = query.score(batch, Position::default(), scoring).await?;
        let ranking = query.rank(scored, request.top_k).await?;
        let kernels = explain(&query, &ranking, explained).await?;
        let timings = timings(&found, &ranking.scored, started);
        let scored = &ranking.scored;
        let assessment = query.assess(scored);
        let mut answer = RankConfigsResponse {
            model: Some(selector(&query.model)),
            graph_hash: query.graph.hash.0.to_vec().into(),
            reuse: Some(reuse_counts(scored.reuse())),
            scored_configs: count(scored.scores().len()),
            adaptation: adaptation_of(&query),
            unit: unit_of(&query).into(),
            confidence: confidence(&assessment),
            timings: Some(stage_timings(timings)),
            warnings: warnings(&found.warnings, &query, Some((scored, &assessment))),
            kernels,
            ..RankConfigsResponse::default()
        };
        // What is not sent does not count in the memory of the answer.
        if request.include_scores {
            answer.scores = ranking.scored.into_scores();
        }
        // A configuration of the ranking has a number and a score, and its deviation if it has one,
        // which counts like another.
        let values = ranking.order.len() + ranking.log_sd.len();
        let bytes = answer_bytes(values, answer.scores.len());
        query.call.place.hold_only(bytes);
        query.record_scored(&timings);
        query.record_ranked(&timings);
        Ok(RankConfigsResponse {
            ranking: ranking.order,
            ranking_scores: ranking.ordered_scores,
            predicted_seconds: ranking.predicted_seconds,
            log_sd: ranking.log_sd,
            ..answer
        })
    }
}

/// Returns the kernels of the first `count` configurations of a ranking.
async fn explain(
    query: &Query,
    ranking: &Ranking,
    count: usize,
) -> Result<Vec<ConfigKernels>, ServiceError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let best = &ranking.order[..count.min(ranking.order.len())];
    let kernels = query.explain(&ranking.scored, best).await?;
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
