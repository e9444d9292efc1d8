//! The answer to a query, as functions of what was scored: the ranking, how far it can be trusted, and its explanation.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_adaptation::Slowdown;

use super::{Query, ScoredCall};
use crate::{
    call::{CallError, class_of},
    compute::{Class, WorkResult},
    engine::{BatchPart, rank},
    graphs::Warning,
    learning::Lesson,
    model::{ExpectedTau, ScoreUnit, TargetMatch},
    outcome::KernelTime,
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
    pub(crate) assessment: Assessment,
    /// What was ranked.
    pub(crate) scored: ScoredCall,
}

/// How far a ranking can be trusted.
pub(crate) struct Assessment {
    /// Kendall's tau of the ranking and the run times, as expected; `None` if nothing tells it.
    pub(crate) expected: Option<ExpectedTau>,
    /// How far the first configuration is above the fastest, as expected; `None` if scores do not rest on other instances alone.
    pub(crate) slowdown: Option<Slowdown>,
    /// Number of nodes of the graph whose opcodes are unknown.
    pub(crate) unknown_opcodes: usize,
    /// What to do if little is expected.
    pub(crate) warning: Option<Warning>,
}

/// A lower expected tau is worth a warning.
const UNSURE: f64 = 0.3;

impl Query {
    /// Ranks everything that was scored. The ranking has the length `top_k`, or that of everything if it is 0.
    pub(crate) async fn rank(&self, scored: ScoredCall, top_k: u32) -> Result<Ranking, CallError> {
        let started = Instant::now();
        let class = class_of(scored.scores().len());
        let sort = move || {
            let order = rank(scored.scores(), top_k as usize);
            (order, scored)
        };
        let WorkResult {
            value: (order, scored),
            waited,
        } = match class {
            // Too little to hand to a worker.
            Class::Interactive => WorkResult {
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
            assessment: self.assess(&scored),
            order,
            ordered_scores,
            predicted_seconds,
            log_sd,
            waited,
            scored,
        })
    }

    /// Returns the kernels of the first `count` configurations of a ranking of a batch that was kept, and their predicted seconds.
    pub(crate) async fn explain(
        &self,
        ranking: &Ranking,
        count: usize,
    ) -> Result<Vec<Vec<KernelTime>>, CallError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let unsupported = |why| Err(CallError::ExplainUnsupported { why });
        let graph = &self.found.graph;
        if graph.whole.program().is_none() {
            return unsupported("only fusions have kernels");
        }
        if self.replaces_scores() {
            return unsupported("scores that are adapted to measurements are no sums over kernels");
        }
        let Some(batch) = &ranking.scored.kept else {
            return Ok(Vec::new());
        };
        let best = ranking.order.iter().take(count);
        let numbers = best.map(|&config| config as usize).collect();
        let chosen = BatchPart::of_numbers(Arc::clone(batch), numbers);
        let terms = self.terms(Class::Interactive, true);
        Ok(self
            .engine
            .kernels(&self.model, graph, chosen, terms)
            .await?)
    }

    /// Judges the ranking of what was scored.
    pub(crate) fn assess(&self, scored: &ScoredCall) -> Assessment {
        let lesson = self.lesson.as_ref();
        let expected = match lesson.filter(|lesson| lesson.replaces_order()) {
            Some(lesson) => expected_of(lesson, scored),
            // The model's validation data say nothing of other configurations.
            None if self.choice.suits == TargetMatch::OtherCompiler => None,
            None => {
                let calibration = self.model.artifact.calibration.as_ref();
                let traits = scored.seen.traits(scored.scores());
                calibration
                    .zip(traits)
                    .and_then(|(calibration, traits)| calibration.expected(&traits))
            }
        };
        Assessment {
            warning: self.unsure(scored, expected),
            expected,
            slowdown: lesson.and_then(|lesson| {
                let all = scored.scores();
                let lowest = all.iter().copied().reduce(f32::min);
                lesson.expected_slowdown(lowest?, all.len())
            }),
            unknown_opcodes: self.found.graph.whole.unknown_opcodes(),
        }
    }

    /// Warns that little is expected of a ranking, or nothing although the model's artifact says what to expect of other lists.
    fn unsure(&self, scored: &ScoredCall, expected: Option<ExpectedTau>) -> Option<Warning> {
        let what = match expected {
            Some(expected) if expected.tau < UNSURE => {
                let (low, high) = expected.interval();
                format!(
                    "the ranking is expected to agree with run times by a Kendall's tau of {:.2} ({low:.2} to {high:.2})",
                    expected.tau
                )
            }
            None if !self.replaces_scores() && scored.seen.traits(scored.scores()).is_some() => {
                format!(
                    "nothing tells how well `{}` ranks the list: it is unlike those that the model was validated on, or for another \
                 compiler",
                    self.model.manifest().name
                )
            }
            _ => return None,
        };
        let message = format!(
            "{what}; measure configurations that SuggestConfigs chooses, or random ones, and send their times as `adapt`"
        );
        Some(Warning {
            reason: "RANKING_UNSURE",
            message,
        })
    }
}

/// What is expected of a ranking by what was learned. The model's validation data say nothing of it.
fn expected_of(lesson: &Lesson, scored: &ScoredCall) -> Option<ExpectedTau> {
    let Some(basis) = lesson.adaptation.basis else {
        return lesson.expected_by_sources();
    };
    let left = scored.scores().len().saturating_sub(basis.learned);
    scored.configs.sample.expected_tau(&basis, left)
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
