use std::time::{Duration, Instant};

use super::{Query, Scored};
use crate::{
    call::{CallError, class_of},
    compute::{Class, Computed},
    engine::rank,
    model::ScoreUnit,
};

/// A ranking over all batches.
pub(crate) struct Ranking {
    /// The numbers of the configurations, by ascending score.
    pub(crate) order: Vec<u32>,
    /// Their scores.
    pub(crate) ordered_scores: Vec<f32>,
    /// The predicted run time of each configuration of the ranking; empty unless scores are adapted.
    pub(crate) predicted_seconds: Vec<f32>,
    /// The deviation of the logarithm of each predicted time.
    pub(crate) log_sd: Vec<f32>,
    /// Time until a worker was free to rank.
    pub(crate) waited: Duration,
    /// What was ranked.
    pub(crate) scored: Scored,
}

impl Query {
    /// Ranks everything that was scored. The ranking has the length `top_k`, or that of everything if it is 0.
    pub(crate) async fn rank(&self, scored: Scored, top_k: u32) -> Result<Ranking, CallError> {
        let started = Instant::now();
        let class = class_of(scored.scores().len());
        let sort = move || {
            let order = rank(scored.scores(), top_k as usize);
            (order, scored)
        };
        let Computed {
            value: (order, scored),
            waited,
        } = match class {
            // Too little to hand to a worker.
            Class::Interactive => Computed {
                value: sort(),
                waited: Duration::ZERO,
            },
            Class::Bulk => self.engine.pool().run(Class::Bulk, move |_| sort()).await?,
        };
        self.call.record.ranked(started + waited);
        let score = |&config: &u32| scored.scores()[config as usize];
        let ordered_scores: Vec<f32> = order.iter().map(score).collect();
        // Scores in seconds are run times, and adapted ones are their logarithms.
        let (predicted_seconds, log_sd) = match self.unit() {
            ScoreUnit::Seconds => (ordered_scores.clone(), Vec::new()),
            ScoreUnit::None => run_times(&order, &ordered_scores, &scored.configs.deviations),
        };
        Ok(Ranking {
            order,
            ordered_scores,
            predicted_seconds,
            log_sd,
            waited,
            scored,
        })
    }
}

/// Returns the predicted run times of ranked configurations, and the deviations of their logarithms, if scores are adapted.
fn run_times(order: &[u32], scores: &[f32], deviations: &[f32]) -> (Vec<f32>, Vec<f32>) {
    if deviations.is_empty() {
        return (Vec::new(), Vec::new());
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
    let seconds = |&score: &f32| libm::exp(score.into()) as f32;
    let deviations = order.iter().map(|&config| deviations[config as usize]);
    (scores.iter().map(seconds).collect(), deviations.collect())
}
