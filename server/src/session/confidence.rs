//! Asks a second model, which learned from the same data.

use hlorank_graph::{Configurations, EncodedBatch};

use super::{Session, SessionError};
use crate::{adaptation::Confidence, compute::Class, engine::Terms, model::Model};

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
fn spread(all: &Configurations) -> Configurations {
    let step = all.len().div_ceil(COMPARED).max(1);
    all.select(&(0..all.len()).step_by(step).collect::<Vec<_>>())
}

impl Session {
    /// Compares the scores of a batch that was scored with those of another model of the same training data, if one serves.
    pub(crate) async fn assess(&self, batch: EncodedBatch) -> Result<Assessment, SessionError> {
        let other = self.sessions().second_opinion(self.model());
        let mut scores = None;
        if let Some(other) = &other {
            let field = batch.field();
            let read = self.reader_from(batch, field, 0);
            let spread = move || Ok::<_, SessionError>(spread(&read()?));
            let some = self
                .sessions()
                .engine()
                .pool()
                .run(Class::Bulk, move |_| spread())
                .await?
                .value?;
            let own = self.model_scores(self.model(), some.clone()).await?;
            scores = Some([own, self.model_scores(other, some).await?]);
        }
        let compared = scores
            .as_ref()
            .map(|[own, other]| [own.as_slice(), other.as_slice()]);
        let basis = self.adaptation().and_then(|adaptation| adaptation.basis);
        let confidence = Confidence::of(self.graph().task, compared, basis);
        Ok(Assessment {
            confidence,
            other_model: other.map(|other| other.manifest().name.clone()),
            unknown_opcodes: self.graph().whole.unknown_opcodes(),
        })
    }

    async fn model_scores(
        &self,
        model: &Model,
        configurations: Configurations,
    ) -> Result<Vec<f32>, SessionError> {
        let terms = Terms {
            continues_request: true,
            ..self.terms(Class::Interactive)
        };
        let (engine, graph) = (self.sessions().engine(), self.shared_graph());
        let read = move || Ok::<_, SessionError>(configurations);
        Ok(engine.score(model, &graph, read, terms).await?.scores)
    }
}
