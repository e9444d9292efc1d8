//! Asks a second model, which learned from the same data.

use std::sync::Arc;

use hlorank_graph::Configurations;

use super::Session;
use crate::{
    adaptation::Confidence,
    call::CallError,
    compute::Class,
    engine::{BatchPart, Terms},
    model::Model,
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
    let step = all.len().div_ceil(COMPARED).max(1);
    let numbers = (0..all.len()).step_by(step).collect();
    BatchPart::of_numbers(Arc::clone(all), numbers)
}

impl Session {
    /// Compares the scores of the batch that was kept with those of another model of the same training data, if there is one.
    pub(crate) async fn assess(&self, other: Option<Arc<Model>>) -> Result<Assessment, CallError> {
        let mut scores = None;
        if let (Some(other), Some(batch)) = (&other, &self.kept_batch) {
            let some = spread(batch);
            let own = self.scores_of(&self.model, some.clone()).await?;
            scores = Some([own, self.scores_of(other, some).await?]);
        }
        let compared = scores
            .as_ref()
            .map(|[own, other]| [own.as_slice(), other.as_slice()]);
        let basis = self.adaptation().and_then(|adaptation| adaptation.basis);
        let confidence = Confidence::of(self.graph.task, compared, basis);
        Ok(Assessment {
            confidence,
            other_model: other.map(|other| other.manifest().name.clone()),
            unknown_opcodes: self.graph.whole.unknown_opcodes(),
        })
    }

    /// A model's own scores of some configurations, whatever the call learned.
    async fn scores_of(&self, model: &Model, some: BatchPart) -> Result<Vec<f32>, CallError> {
        let terms = Terms {
            continues_request: true,
            ..self.terms(Class::Interactive)
        };
        let evaluation = self.engine.score(model, &self.graph, some, terms).await?;
        Ok(evaluation.scores)
    }
}
