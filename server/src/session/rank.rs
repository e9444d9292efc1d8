use std::{
    mem::take,
    time::{Duration, Instant},
};

use super::Session;
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
    /// The score of every configuration.
    pub(crate) scores: Vec<f32>,
    /// The predicted run time of each configuration of the ranking; empty unless scores are adapted.
    pub(crate) predicted_seconds: Vec<f32>,
    /// The deviation of the logarithm of each predicted time.
    pub(crate) log_sd: Vec<f32>,
    /// Time until a worker was free to rank.
    pub(crate) waited: Duration,
}

/// Configurations by ascending score, and the scores of all.
struct SortedScores {
    order: Vec<u32>,
    ordered_scores: Vec<f32>,
    scores: Vec<f32>,
}

impl Session {
    /// Ranks everything that was scored.
    pub(crate) async fn rank(&mut self) -> Result<Ranking, CallError> {
        let started = Instant::now();
        let scores = take(&mut self.scores);
        let deviations = take(&mut self.deviations);
        let Computed {
            value: sorted,
            waited,
        } = self.sorted(scores).await?;
        self.call.record.ranked(started + waited);
        // Scores in seconds are run times, and adapted ones are their logarithms.
        let (predicted_seconds, log_sd) = match self.unit() {
            ScoreUnit::Seconds => (sorted.ordered_scores.clone(), Vec::new()),
            ScoreUnit::None => run_times(&sorted, &deviations),
        };
        Ok(Ranking {
            order: sorted.order,
            ordered_scores: sorted.ordered_scores,
            scores: sorted.scores,
            predicted_seconds,
            log_sd,
            waited,
        })
    }

    async fn sorted(&self, scores: Vec<f32>) -> Result<Computed<SortedScores>, CallError> {
        let top_k = self.top_k as usize;
        Ok(match class_of(scores.len()) {
            // Too little to hand to a worker.
            Class::Interactive => Computed {
                value: SortedScores::of(scores, top_k),
                waited: Duration::ZERO,
            },
            Class::Bulk => {
                let sort = move |_| SortedScores::of(scores, top_k);
                self.engine.pool().run(Class::Bulk, sort).await?
            }
        })
    }
}

impl SortedScores {
    fn of(scores: Vec<f32>, top_k: usize) -> Self {
        let order = rank(&scores, top_k);
        let score = |&config: &u32| scores[config as usize];
        Self {
            ordered_scores: order.iter().map(score).collect(),
            order,
            scores,
        }
    }
}

/// Returns the predicted run times of ranked configurations, and the deviations of their logarithms, if scores are adapted.
fn run_times(sorted: &SortedScores, deviations: &[f32]) -> (Vec<f32>, Vec<f32>) {
    if deviations.is_empty() {
        return (Vec::new(), Vec::new());
    }
    #[expect(clippy::cast_possible_truncation, reason = "rounded to the nearest")]
    let seconds = |&score: &f32| libm::exp(score.into()) as f32;
    let seconds = sorted.ordered_scores.iter().map(seconds).collect();
    let order = sorted.order.iter();
    let deviations = order.map(|&config| deviations[config as usize]);
    (seconds, deviations.collect())
}

/// Returns the number of bytes of a ranking and of scores, and of the message that holds them.
pub(crate) fn answer_bytes(ranked: usize, scores: usize) -> usize {
    // The message is encoded while the lists that it was made of are still there.
    2 * (ranked * (size_of::<u32>() + size_of::<f32>()) + scores * size_of::<f32>())
}
