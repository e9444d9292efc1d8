use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, LayoutBatch};

use super::{ScoredBatch, Session};
use crate::{
    adaptation::Wanted,
    compute::Class,
    engine::Terms,
    outcome::Evaluation,
    session::{
        SessionError,
        adapt::predicted_means,
        space::Combined,
        suggest::{Choice, Predicted, Suggested, choosing_bytes, renumber},
    },
};

impl Session {
    /// Chooses which configurations of a batch to measure next, or which combinations of them. Returns the combinations too,
    /// in the order of the suggestions.
    pub(crate) async fn suggest(
        &mut self,
        batch: EncodedBatch,
        mut wanted: Wanted,
        combined: Option<Combined>,
    ) -> Result<(ScoredBatch, Vec<Suggested>, Option<LayoutBatch>), SessionError> {
        let asked = Instant::now();
        let field = batch.field();
        let class = self.accept(&batch, field)?;
        let (engine, read) = (
            Arc::clone(self.sessions.engine()),
            self.reader(batch, field),
        );
        let all = engine.pool().run(class, move |_| read()).await?.value?;
        let all = Arc::new(all);
        let (mut evaluation, mut from) = self.predict(all, self.terms(class)).await?;
        let (mut drawn, mut _space) = (0..from.scores.len(), None);
        if let Some(combined) = combined {
            let terms = Terms {
                continues_request: true,
                ..self.terms(class)
            };
            let found = self.search(from, combined, &mut wanted, terms).await?;
            evaluation.reuse += found.reuse;
            (from, drawn, _space) = (found.visited, found.drawn, Some(found.held));
        }
        let measured = self
            .learned
            .as_ref()
            .map(|learned| Arc::clone(&learned.points))
            .unwrap_or_default();
        let others = wanted.count + wanted.pending.len();
        let _held = engine
            .memory()
            .hold(choosing_bytes(measured.len(), others))?;
        let unit = self.model.manifest().unit();
        let choice = Choice {
            from,
            drawn,
            measured,
            taught: self.taught(),
            unit,
        };
        let choose = move |_| (choice.suggest(&wanted), choice.from.configurations);
        let (mut suggested, configurations) = engine.pool().run(Class::Bulk, choose).await?.value;
        let combinations = combined.and_then(|_| renumber(&mut suggested, &configurations));
        Ok((self.take(evaluation, asked), suggested, combinations))
    }

    /// Scores configurations, and predicts their run times if the call sent measurements.
    pub(in crate::session) async fn predict(
        &self,
        configurations: Arc<Configurations>,
        terms: Terms,
    ) -> Result<(Evaluation, Predicted), SessionError> {
        let engine = self.sessions.engine();
        let scored = Arc::clone(&configurations);
        let evaluation = engine
            .score(&self.model, &self.graph, scored, terms)
            .await?;
        let scores = evaluation.scores.clone();
        let log_seconds = match self.taught() {
            None => scores.clone(),
            Some(taught) => {
                let (pool, all) = (engine.pool(), Arc::clone(&configurations));
                predicted_means(
                    pool,
                    &taught,
                    (all, scores.clone(), self.model.manifest().unit()),
                    terms.class,
                )
                .await?
            }
        };
        Ok((
            evaluation,
            Predicted {
                configurations,
                scores,
                log_seconds,
            },
        ))
    }
}
