//! Says how far a ranking can be trusted, and asks a second model, which learned from the same data, if the call wants that.

use std::sync::Arc;

use hlorank_graph::Configurations;

use super::Session;
use crate::{
    adaptation::{Confidence, Signs},
    call::CallError,
    compute::Class,
    engine::BatchPart,
    graphs::Warning,
    learning::Lesson,
    model::{ExpectedTau, Model},
};

/// How far a ranking can be trusted, and the second model that was asked.
pub(crate) struct Assessment {
    pub(crate) confidence: Confidence,
    pub(crate) other_model: Option<String>,
    /// Number of nodes of the graph whose opcodes are unknown.
    pub(crate) unknown_opcodes: usize,
}

/// Maximum number of configurations that the second model scores.
const COMPARED: usize = 256;

/// Returns up to 256 configurations that lie evenly over a batch, for a comparison of models.
fn spread(all: &Arc<Configurations>) -> BatchPart {
    // Lists often have neighbours that are alike, so that the first of them would not stand for
    // all.
    let step = all.len().div_ceil(COMPARED).max(1);
    let numbers = (0..all.len()).step_by(step).collect();
    BatchPart::of_numbers(Arc::clone(all), numbers)
}

/// A lower expected tau is worth a warning.
const UNSURE: f64 = 0.3;

/// Warns that little is expected of a ranking.
fn unsure(confidence: &Confidence, model: &str) -> Option<Warning> {
    let expected = confidence
        .expected
        .filter(|expected| expected.tau < UNSURE)?;
    let (low, high) = expected.interval();
    let message = format!(
        "the ranking by `{model}` is expected to agree with run times by a Kendall's tau of {:.2} ({low:.2} to {high:.2}): the list is \
         unlike those that the model was validated on, or its scores hardly differ; measure {} configurations that SuggestConfigs \
         chooses, or random ones, and send their times as `adapt`",
        expected.tau, confidence.measure_first
    );
    Some(Warning {
        reason: "RANKING_UNSURE",
        message,
    })
}

impl Session {
    /// Judges the ranking of what was scored. Compares the scores of the batch that was kept with those of another model of the same
    /// training data, if one is given.
    pub(crate) async fn assess(
        &mut self,
        other: Option<Arc<Model>>,
    ) -> Result<Assessment, CallError> {
        let compared = match (&other, &self.kept_batch) {
            (Some(other), Some(batch)) => Some(self.compared(other, batch).await?),
            _ => None,
        };
        let signs = Signs {
            task: self.graph.task,
            calibrated: self.calibrated(),
            suits: self.suits,
            scores: compared
                .as_ref()
                .map(|both| both.each_ref().map(|each| &each[..])),
            basis: self.lesson.as_ref().and_then(Lesson::basis),
        };
        let confidence = Confidence::of(&signs);
        // A call that sent measurements already does what the warning asks for.
        if signs.basis.is_none() {
            let warning = unsure(&confidence, &self.model.manifest().name);
            self.warnings.extend(warning);
        }
        Ok(Assessment {
            confidence,
            other_model: other.map(|other| other.manifest().name.clone()),
            unknown_opcodes: self.graph.whole.unknown_opcodes(),
        })
    }

    /// The scores of the call's model and of another one for some configurations of a batch.
    async fn compared(
        &self,
        other: &Model,
        batch: &Arc<Configurations>,
    ) -> Result<[Vec<f32>; 2], CallError> {
        let some = spread(batch);
        let own = self.scores_of(&self.model, some.clone()).await?;
        Ok([own, self.scores_of(other, some).await?])
    }

    /// What the model's validation data say of a list like that of the call, if its artifact has some.
    fn calibrated(&self) -> Option<ExpectedTau> {
        let calibration = self.model.artifact().calibration()?;
        Some(calibration.expected(&self.seen.traits()?))
    }

    /// A model's own scores of some configurations, whatever the call learned.
    async fn scores_of(&self, model: &Model, some: BatchPart) -> Result<Vec<f32>, CallError> {
        let terms = self.terms_to_continue(Class::Interactive);
        let evaluation = self.engine.score(model, &self.graph, some, terms).await?;
        Ok(evaluation.scores)
    }
}
