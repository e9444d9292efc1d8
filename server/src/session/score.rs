use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch};

use super::{Session, answer_bytes, partial::score_in_time};
use crate::{
    call::{CallError, Position},
    compute::Class,
    engine::Terms,
    learning::ScoredConfigs,
    model::SeenList,
    outcome::{Evaluation, Reuse, Stages, Timings, UnscoredConfigs},
};

/// What came of one batch.
pub(crate) struct ScoredBatch {
    /// Number of the batch's first configuration in the call.
    pub(crate) first: usize,
    /// The number of configurations that were scored; fewer than were sent if a partial ranking is allowed.
    pub(crate) configs: usize,
    /// How much work was shared, within this batch.
    pub(crate) reuse: Reuse,
    asked: Instant,
    stages: Stages,
}

impl Session {
    /// Scores the next batch of a stream. The batch is read once, as the first of the work on it.
    pub(crate) async fn score(&mut self, batch: EncodedBatch) -> Result<ScoredBatch, CallError> {
        let asked = Instant::now();
        let first = self.scores.len();
        let class = self.accept(&batch)?;
        let kept_bytes = self.bytes_to_keep(&batch);
        let terms = self.terms(class);
        // A batch that is refused in any case need not be read.
        self.engine.check(&self.model, &self.graph, terms)?;
        let score = self.scoring(batch, terms);
        let scored = match class {
            Class::Interactive => {
                // One worker does all of a small call, because handing the pieces to others would cost more than they do.
                let driven = self.engine.pool().drive(score).await?;
                driven.value.map(|(mut scored, kept, seen)| {
                    scored.evaluation.stages.waited += driven.waited;
                    (scored, kept, seen)
                })
            }
            Class::Bulk => score.await,
        };
        let (scored, kept, seen) = scored.map_err(|error| error.numbered_after(first))?;
        self.seen.add(seen);
        self.keep(kept, kept_bytes);
        Ok(self.record_with_deviations(scored, asked))
    }

    /// Returns a future that reads and scores the next batch, which it returns, too, if it is kept, and what was seen of it.
    fn scoring(
        &self,
        batch: EncodedBatch,
        terms: Terms,
    ) -> impl Future<
        Output = Result<(ScoredConfigs, Option<Arc<Configurations>>, SeenList), CallError>,
    > + Send
    + 'static {
        let read = self.reading(batch);
        let evaluator = self.evaluator();
        let top_k = self.top_k;
        let keeps = self.keeps_batch;
        async move {
            let pool = evaluator.engine.pool();
            let read = pool.run(terms.class, move |_| read()).await?;
            let (batch, seen) = read.value?;
            let batch = Arc::new(batch);
            // Nobody else has a batch that is not kept, so that the engine need not copy it.
            let kept = keeps.then(|| Arc::clone(&batch));
            let mut scored = evaluator.score(batch.into(), terms, top_k).await?;
            // The call waited for the first of its work. Later waits count towards their stages.
            scored.evaluation.stages.waited = read.waited;
            Ok((scored, kept, seen))
        }
    }

    /// Scores the first configurations of a batch, as many as there is time for before the call's deadline. Scores all
    /// if the call has none. Fails if the model needs the whole batch.
    pub(crate) async fn score_in_time(
        &mut self,
        batch: EncodedBatch,
    ) -> Result<ScoredBatch, CallError> {
        let manifest = self.model.manifest();
        if !manifest.kind().allows_partial() {
            return Err(CallError::PartialUnsupported {
                model: manifest.name.clone(),
            });
        }
        let Some(deadline) = self.call.deadline else {
            return self.score(batch).await;
        };
        let asked = Instant::now();
        let sent = batch.count();
        let kept_bytes = self.bytes_to_keep(&batch);
        let (class, all) = self.read(batch).await?;
        self.keep(self.keeps_batch.then(|| Arc::clone(&all)), kept_bytes);
        let scored = score_in_time(&self.evaluator(), all, deadline, class, self.top_k).await?;
        // The metric counts rankings that lack configurations, and not those that only may.
        if scored.evaluation.scores.len() < sent {
            self.series.ranked_in_part();
        }
        Ok(self.record_with_deviations(scored, asked))
    }

    /// Reads the next batch on a worker. Returns the class of the work on it, too.
    pub(crate) async fn read(
        &mut self,
        batch: EncodedBatch,
    ) -> Result<(Class, Arc<Configurations>), CallError> {
        // The caller has the batch while the engine scores a copy of it.
        let class = self.reader.accept(&batch, 2)?;
        let read = self.reading(batch);
        let read = self.engine.pool().run(class, move |_| read()).await?;
        let (batch, seen) = read.value?;
        self.seen.add(seen);
        Ok((class, Arc::new(batch)))
    }

    fn record_with_deviations(&mut self, scored: ScoredConfigs, asked: Instant) -> ScoredBatch {
        self.deviations.extend(scored.deviations);
        self.sample.add(scored.sample);
        self.record(scored.evaluation, asked)
    }

    /// Adds the scores of a batch to those of the call.
    pub(crate) fn record(&mut self, evaluation: Evaluation, asked: Instant) -> ScoredBatch {
        let Evaluation {
            scores,
            reuse,
            unscored,
            stages,
        } = evaluation;
        let first = self.scores.len();
        let configs = scores.len();
        self.unscored = UnscoredConfigs::joined(self.unscored, unscored, first);
        self.series.scored(reuse);
        self.call.record.scored(reuse, asked, &stages);
        self.batches += 1;
        self.reuse += reuse;
        append(&mut self.scores, scores);
        self.hold_answer();
        ScoredBatch {
            first,
            configs,
            reuse,
            asked,
            stages,
        }
    }

    /// Holds what the answer takes. What the batch and its plan took is free again.
    fn hold_answer(&self) {
        let ranked = self.scores.len() + self.deviations.len();
        let answer = answer_bytes(ranked, self.scores.len());
        self.call.place.hold_only(answer + self.kept_bytes);
    }

    /// Checks the width of a batch, holds memory for it, and returns its class.
    fn accept(&self, batch: &EncodedBatch) -> Result<Class, CallError> {
        // The engine copies configurations that others use after it.
        let is_shared = self.lesson.is_some() || self.keeps_batch;
        let copies = if is_shared { 2 } else { 1 };
        self.reader.accept(batch, copies)
    }

    /// Returns a function that reads the next batch, for a worker, and looks at some of its configurations.
    fn reading(
        &self,
        batch: EncodedBatch,
    ) -> impl FnOnce() -> Result<(Configurations, SeenList), CallError> + Send + 'static {
        let reader = self.reader.clone();
        let is_calibrated = self.model.artifact().calibration().is_some();
        let before = Position {
            batches: self.batches,
            configs: self.scores.len(),
        };
        move || {
            let batch = reader.read(&batch, batch.field(), before)?;
            let seen = is_calibrated.then(|| SeenList::configurations(&batch));
            Ok((batch, seen.unwrap_or_default()))
        }
    }

    /// The bytes of a batch that is kept once it was scored.
    fn bytes_to_keep(&self, batch: &EncodedBatch) -> usize {
        if self.keeps_batch {
            self.reader.bytes(batch)
        } else {
            0
        }
    }

    fn keep(&mut self, batch: Option<Arc<Configurations>>, bytes: usize) {
        self.kept_batch = batch;
        self.kept_bytes = bytes;
    }
}

impl ScoredBatch {
    /// Time of each stage of an answer that is written now.
    pub(crate) fn timings(&self) -> Timings {
        self.stages.timings(self.asked)
    }
}

fn append(scores: &mut Vec<f32>, next: Vec<f32>) {
    // The first batch, often the only one, is moved and not copied.
    if scores.is_empty() {
        *scores = next;
    } else {
        scores.extend(next);
    }
}
