//! `RankConfigs`: one batch of configurations, ranked.

use std::time::Instant;

use hlorank_proto::{
    received::RankConfigsRequest,
    v1::{ConfigKernels, RankConfigsResponse},
};

use super::{
    CostModel, ServiceError,
    adapt_request::{adaptation_of, confidence},
    answer::{config_kernels, count, reuse_counts, selector, stage_timings, unit_of, warnings},
    model_selector::wanted_model,
};
use crate::{
    call::Call,
    outcome::Timings,
    session::{Session, answer_bytes},
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
        let wanted_model = wanted_model(request.model, request.adapt.as_ref())?;
        let (found, model) = self
            .find(request.graph, &wanted_model, batch.task(), &call.record)
            .await?;
        let session = self.sessions.open(call, model, &found)?;
        let mut session = session.ranking(request.top_k);
        // What is learned comes before the scores, because they are adapted to it.
        self.adapt(&mut session, request.adapt).await?;
        let explained = read_explain_top(request.explain_top)?;
        if explained > 0 || request.assess_confidence {
            session.keep_batch();
        }
        let outcome = if request.allow_partial {
            session.score_in_time(batch).await?
        } else {
            session.score(batch).await?
        };
        let mut ranked = session.rank().await?;
        let kernels = explain(&session, &ranked.order, explained).await?;
        let is_asked = request.assess_confidence;
        let other = is_asked.then(|| self.models.second_opinion(session.model()));
        let assessment = session.assess(other.flatten()).await?;
        let timings = Timings {
            featurize: found.featurize,
            total: started.elapsed(),
            ..outcome.timings()
        };
        session.record_scored(&timings);
        session.record_ranked(&timings);
        if !request.include_scores {
            ranked.scores = Vec::new();
        }
        // From here on, the call holds the memory of its answer alone.
        let values = ranked.order.len() + ranked.log_sd.len();
        let answer_bytes = answer_bytes(values, ranked.scores.len());
        session.call().place.hold_only(answer_bytes);
        Ok(RankConfigsResponse {
            ranking: ranked.order,
            ranking_scores: ranked.ordered_scores,
            scores: ranked.scores,
            model: Some(selector(session.model())),
            graph_hash: found.graph.hash.0.to_vec().into(),
            timings: Some(stage_timings(timings)),
            reuse: Some(reuse_counts(outcome.reuse)),
            warnings: warnings(found.warnings, &mut session),
            scored_configs: count(outcome.configs),
            predicted_seconds: ranked.predicted_seconds,
            log_sd: ranked.log_sd,
            adaptation: adaptation_of(&session),
            unit: unit_of(&session).into(),
            kernels,
            confidence: confidence(assessment, is_asked),
        })
    }
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
        return Err(ServiceError::Invalid {
            field: "explain_top",
            found: configs.to_string(),
            expected: format!("at most {MAX_EXPLAINED}"),
        });
    }
    Ok(configs as usize)
}
