use std::{mem::take, sync::Arc};

use hlorank_adaptation::PredictedList;
use hlorank_graph::{Configurations, SegmentedGraph};

use super::predict::{ModelScores, Predictor};
use crate::{
    call::CallError,
    compute::Class,
    engine::{BatchPart, Engine, Terms},
    model::Model,
    outcome::Evaluation,
};

/// Scores configurations of a graph by a model. If something was learned, their scores are predicted ln(seconds).
#[derive(Clone)]
pub(crate) struct Evaluator {
    pub(crate) engine: Arc<Engine>,
    pub(crate) model: Arc<Model>,
    pub(crate) graph: Arc<SegmentedGraph>,
    /// What was learned.
    pub(crate) predictor: Option<Predictor>,
}

/// Configurations that were scored.
pub(crate) struct ScoredConfigs {
    pub(crate) evaluation: Evaluation,
    /// The deviations of predicted ln(seconds), of which those of the best are set; empty if nothing was learned.
    pub(crate) deviations: Vec<f32>,
    /// What is predicted of some of them; empty if nothing was learned of the graph itself.
    pub(crate) sample: PredictedList,
}

/// Configurations, and what is predicted of them.
pub(crate) struct PredictedBatch {
    pub(crate) configurations: Arc<Configurations>,
    /// The model's scores.
    pub(crate) scores: Vec<f32>,
    /// The predicted ln(seconds) of each configuration; the model's score, if nothing was learned.
    pub(crate) log_seconds: Vec<f32>,
}

impl ScoredConfigs {
    /// Adds the configurations that come next in a batch.
    pub(crate) fn append(&mut self, next: Self) {
        self.evaluation.append(next.evaluation);
        self.deviations.extend(next.deviations);
        self.sample.add(next.sample);
    }
}

impl Evaluator {
    /// Scores configurations. The best `top_k` (0 for all) get deviations, unless nothing was learned of the graph itself.
    pub(crate) async fn score(
        &self,
        part: BatchPart,
        terms: Terms,
        top_k: u32,
    ) -> Result<ScoredConfigs, CallError> {
        let Some(predictor) = &self.predictor else {
            return Ok(ScoredConfigs {
                evaluation: self.evaluate(part, terms).await?,
                deviations: Vec::new(),
                sample: PredictedList::default(),
            });
        };
        let (pool, class) = (self.engine.pool(), terms.class);
        // A part of a batch is selected on a compute thread, unless it is all of it.
        let configurations = if let Some(batch) = part.whole() {
            Arc::clone(batch)
        } else {
            let select = move |_| Arc::new(part.into_configurations());
            pool.run(class, select).await?.value
        };
        let part = BatchPart::from(Arc::clone(&configurations));
        let mut evaluation = self.evaluate(part, terms).await?;
        let scores = take(&mut evaluation.scores);
        let batch = self.scored(predictor, configurations, scores);
        let means = batch.means(pool, class).await?;
        // A pool alone predicts times up to a common factor, so that their deviation says nothing.
        let deviations = if predictor.adapted.is_some() {
            batch.deviations(pool, class, &means, top_k).await?
        } else {
            Vec::new()
        };
        let sample = batch.sample(pool, class).await?;
        evaluation.scores = means;
        Ok(ScoredConfigs {
            evaluation,
            deviations,
            sample,
        })
    }

    /// Scores configurations, and keeps the scores beside what is predicted of them.
    pub(crate) async fn predict(
        &self,
        configurations: Arc<Configurations>,
        terms: Terms,
    ) -> Result<(Evaluation, PredictedBatch), CallError> {
        let part = BatchPart::from(Arc::clone(&configurations));
        let evaluation = self.evaluate(part, terms).await?;
        let scores = evaluation.scores.clone();
        let log_seconds = match &self.predictor {
            None => scores.clone(),
            Some(predictor) => {
                let batch = self.scored(predictor, Arc::clone(&configurations), scores.clone());
                batch.means(self.engine.pool(), terms.class).await?
            }
        };
        let predicted = PredictedBatch {
            configurations,
            scores,
            log_seconds,
        };
        Ok((evaluation, predicted))
    }

    /// What is predicted of some configurations of a batch; nothing if nothing was learned of the graph itself.
    pub(crate) async fn sample_of(
        &self,
        predicted: &PredictedBatch,
        class: Class,
    ) -> Result<PredictedList, CallError> {
        let Some(predictor) = &self.predictor else {
            return Ok(PredictedList::default());
        };
        let configurations = Arc::clone(&predicted.configurations);
        let batch = self.scored(predictor, configurations, predicted.scores.clone());
        batch.sample(self.engine.pool(), class).await
    }

    async fn evaluate(&self, part: BatchPart, terms: Terms) -> Result<Evaluation, CallError> {
        let evaluated = self.engine.score(&self.model, &self.graph, part, terms);
        Ok(evaluated.await?)
    }

    fn scored(
        &self,
        predictor: &Predictor,
        configurations: Arc<Configurations>,
        scores: Vec<f32>,
    ) -> Arc<ModelScores> {
        Arc::new(ModelScores {
            predictor: predictor.clone(),
            configurations,
            scores,
            unit: self.model.manifest().unit,
        })
    }
}
