//! `RankConfigs`: one batch of configurations, ranked.

use std::time::Instant;

use hlorank_proto::{
    received::RankConfigsRequest,
    v1::{ConfigKernels, KernelTime, RankConfigsResponse},
};

use super::{
    CostModel,
    answer::{count, ranking_answer, timings},
    request::check_maximum,
};
use crate::{
    call::{Call, Position},
    errors::ServiceError,
    outcome,
    queries::{Scoring, answer_bytes},
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
        check_maximum("explain_top", request.explain_top, MAX_EXPLAINED)?;
        let batch = self.batch(request.batch).await?;
        let task = Some(batch.task());
        let query = self
            .open(request.graph, request.model, request.adapt, task, call)
            .await?;
        let scoring = Scoring {
            top_k: request.top_k,
            // Kernels evaluate configurations again after they are ranked.
            keeps_batch: request.explain_top > 0,
            is_partial: request.allow_partial,
        };
        let scored = query.score(batch, Position::default(), scoring).await?;
        let ranking = query.rank(scored, request.top_k).await?;
        let kernels = query
            .explain(&ranking, request.explain_top as usize)
            .await?;
        let timings = timings(&query, &ranking.scored, started);
        query.record_scored(&timings);
        query.record_ranked(&timings);
        // What is not sent does not count in the memory of the answer.
        let mut answer = ranking_answer(&query, ranking, timings, request.include_scores);
        answer.kernels = kernels.into_iter().map(config_kernels).collect();
        // A configuration of the ranking has a number and a score, and its deviation if it has one,
        // which counts like another.
        let values = answer.ranking.len() + answer.log_sd.len();
        query
            .call
            .place
            .hold_only(answer_bytes(values, answer.scores.len()));
        Ok(answer)
    }
}

/// Writes the kernels of a configuration.
fn config_kernels(kernels: Vec<outcome::KernelTime>) -> ConfigKernels {
    let kernel = |kernel: outcome::KernelTime| KernelTime {
        node: kernel.node,
        computed_nodes: count(kernel.computed_nodes),
        seconds: kernel.seconds,
    };
    ConfigKernels {
        kernels: kernels.into_iter().map(kernel).collect(),
    }
}
