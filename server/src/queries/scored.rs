use std::{sync::Arc, time::Instant};

use hlorank_graph::Configurations;

use crate::{
    call::Position,
    graphs::Warning,
    learning::ScoredConfigs,
    model::SeenList,
    outcome::{Reuse, Timings, UnscoredConfigs},
};

/// What was scored of a call: one batch, or several ones together.
pub(crate) struct ScoredCall {
    pub(super) batches: usize,
    pub(super) configs: ScoredConfigs,
    /// What was seen of the configurations.
    pub(super) seen: SeenList,
    /// The batch, if it is kept for an explanation.
    pub(super) kept: Option<Arc<Configurations>>,
    /// When the first batch came.
    pub(super) asked: Instant,
}

impl ScoredCall {
    /// Adds the batch that was scored next.
    pub(crate) fn append(&mut self, next: Self) {
        self.batches += next.batches;
        self.configs.append(next.configs);
        self.seen.add(next.seen);
    }

    /// Where the next batch stands.
    pub(crate) fn end(&self) -> Position {
        Position {
            batches: self.batches,
            configs: self.scores().len(),
        }
    }

    /// Scores in the order sent, fewer than configurations if a partial ranking is allowed.
    pub(crate) fn scores(&self) -> &[f32] {
        &self.configs.evaluation.scores
    }

    pub(crate) fn into_scores(self) -> Vec<f32> {
        self.configs.evaluation.scores
    }

    /// How much work was shared.
    pub(crate) fn reuse(&self) -> Reuse {
        self.configs.evaluation.reuse
    }

    /// Time of each stage of an answer that is written now.
    pub(crate) fn timings(&self) -> Timings {
        self.configs.evaluation.stages.timings(self.asked)
    }

    /// Warns about configurations whose kernels are too large.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let UnscoredConfigs { count, first } = self.configs.evaluation.unscored?;
        let message = format!(
            "{count} configurations have an infinite score; configuration {}: {}",
            first.config, first.reason
        );
        Some(Warning {
            reason: "KERNEL_TOO_LARGE",
            message,
        })
    }
}

/// Returns the number of bytes of a ranking and of scores, and of the message that holds them.
pub(crate) fn answer_bytes(ranked: usize, scores: usize) -> usize {
    // The message is encoded while the lists that it was made of are still there.
    2 * (ranked * (size_of::<u32>() + size_of::<f32>()) + scores * size_of::<f32>())
}
