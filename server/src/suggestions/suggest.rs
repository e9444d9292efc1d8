//! Chooses which configurations to measure next.

use std::{ops::Range, sync::Arc, time::Instant};

use hlorank_adaptation::{
    Candidates, Expectation, LayoutRows, MAX_SIZE, Point, Reason, Suggestion, SuggestionRequest,
};
use hlorank_graph::{Configurations, LayoutBatch, SegmentedGraph, pace};

use super::{
    CombinedPart,
    search::{CONSIDERED, SearchResult, search},
};
use crate::{
    call::{CallError, Position},
    compute::Class,
    engine::rank,
    learning::{Evaluator, PredictedBatch, Predictor, ScoredConfigs, Scores, point_bytes, points},
    model::ScoreUnit,
    queries::{Query, ReadBatch, ScoredCall},
};

/// What to measure next.
pub(crate) struct Suggestions {
    /// The batch to choose from.
    pub(crate) scored: ScoredCall,
    pub(crate) suggested: Vec<SuggestedConfig>,
    /// The combinations, in the order of the suggestions, if combinations were asked for.
    pub(crate) combinations: Option<LayoutBatch>,
}

/// What is decided of some configurations before others are chosen.
#[derive(Clone, Default)]
pub(crate) struct EarlierChoice {
    /// These are suggested, before all others.
    pub(super) first: Vec<usize>,
    /// These are not suggested.
    pub(super) left_out: Vec<usize>,
}

/// Chooses which configurations of a batch to measure next, or which combinations of them.
pub(crate) async fn suggest_from(
    query: &Query,
    batch: &ReadBatch,
    mut wanted: SuggestionRequest,
    combined: Option<CombinedPart>,
    decided: EarlierChoice,
) -> Result<Suggestions, CallError> {
    let asked = Instant::now();
    let class = batch.class;
    let evaluator = query.evaluator();
    let configurations = Arc::clone(&batch.configurations);
    let predicting = evaluator.predict(configurations, query.terms(class, false));
    let (mut evaluation, predicted) = predicting.await?;
    let sample = evaluator.sample_of(&predicted, class).await?;
    let terms = query.terms(class, true);
    let found = search(&evaluator, predicted, combined, &mut wanted, terms).await?;
    evaluation.reuse += found.reuse;
    let lesson = query.lesson.as_ref();
    let measured = lesson.map_or_else(Arc::default, |lesson| Arc::clone(&lesson.points));
    let (mut suggested, configurations) =
        choose(evaluator, found, measured, wanted, decided).await?;
    let combinations = combined.and_then(|_| renumber(&mut suggested, &configurations));
    let configs = ScoredConfigs {
        evaluation,
        deviations: Vec::new(),
        sample,
    };
    Ok(Suggestions {
        scored: query.scored(
            Position::default(),
            asked,
            configs,
            batch.seen.clone(),
            None,
        ),
        suggested,
        combinations,
    })
}

/// Makes a choice on a compute thread, while the memory that it takes is held, and that of what was
/// found. Returns what is chosen, and from which.
async fn choose(
    evaluator: Evaluator,
    found: SearchResult,
    measured: Arc<Vec<Point>>,
    wanted: SuggestionRequest,
    decided: EarlierChoice,
) -> Result<(Vec<SuggestedConfig>, Arc<Configurations>), CallError> {
    let others = wanted.count + wanted.pending.len();
    let bytes = choosing_bytes(&evaluator.graph, measured.len(), others);
    let _held = evaluator.engine.memory().hold(bytes)?;
    let choice = Choice {
        from: found.visited,
        drawn: found.drawn,
        measured,
        decided,
        predictor: evaluator.predictor,
        unit: evaluator.model.manifest().unit,
    };
    let choose = move |_| (choice.suggest(&wanted), choice.from.configurations);
    let chosen = evaluator.engine.pool().run(Class::Bulk, choose);
    Ok(chosen.await?.value)
}

/// A configuration to measure, and what is predicted of it.
pub(crate) struct SuggestedConfig {
    pub(crate) suggestion: Suggestion,
    /// The predicted ln(seconds), or the model's score.
    pub(crate) score: f32,
    /// The deviation of the predicted ln(seconds); `None` if nothing was learned.
    pub(crate) deviation: Option<f64>,
}

/// A choice of what to measure next.
pub(super) struct Choice {
    pub(super) from: PredictedBatch,
    /// Those among which random ones are drawn.
    pub(super) drawn: Range<usize>,
    /// The configurations that were measured or failed.
    pub(super) measured: Arc<Vec<Point>>,
    pub(super) decided: EarlierChoice,
    pub(super) predictor: Option<Predictor>,
    /// The unit of the model's scores.
    pub(super) unit: ScoreUnit,
}

/// Number of configurations that are compared with the measured ones at a time.
const AT_ONCE: usize = 128;

/// Bytes that choosing among configurations of a graph takes, given the number of measurements and of suggestions and pending
/// configurations.
pub(super) fn choosing_bytes(graph: &SegmentedGraph, measured: usize, others: usize) -> usize {
    // Under two hypotheses, each has covariances, these reduced, and what other suggestions tell. Likeness is the same under both.
    let numbers = (2 * 2 + 1) * measured.min(MAX_SIZE) + 2 * others;
    2 * CONSIDERED * (numbers * size_of::<f64>() + point_bytes(graph))
}

/// Numbers suggestions of layouts from 0, and returns these in this order.
pub(super) fn renumber(
    suggested: &mut [SuggestedConfig],
    configurations: &Configurations,
) -> Option<LayoutBatch> {
    let Configurations::Layout(batch) = configurations else {
        return None;
    };
    let numbers = suggested.iter().map(|each| each.suggestion.config);
    let numbers: Vec<usize> = numbers.collect();
    for (number, each) in suggested.iter_mut().enumerate() {
        each.suggestion.config = number;
    }
    Some(batch.select(&numbers).compacted())
}

impl Choice {
    pub(super) fn suggest(&self, wanted: &SuggestionRequest) -> Vec<SuggestedConfig> {
        let ranking = self.ranking();
        let scores = self.scores();
        let points = |configs: &[usize]| points(&self.from.configurations, configs, &scores);
        let candidates = Candidates {
            ranking: &ranking,
            considered: CONSIDERED,
            drawn: self.drawn.clone(),
            points: &points,
        };
        let predictor = self.predictor.as_ref();
        let adapted = predictor.and_then(|predictor| predictor.adapted.as_deref());
        let has_columns = matches!(&*self.from.configurations, Configurations::FeatureSet(_));
        let log_seconds = &self.from.log_seconds;
        let is_equal = |score: &f32| score.to_bits() == log_seconds[0].to_bits();
        // What knows most suggests: many other instances, measurements of the graph, then other targets, then the model.
        let suggestions = if wanted.count == 0 {
            Vec::new()
        } else if scores.expectation.is_some_and(Expectation::is_followed) {
            wanted.by_model(candidates.ranking)
        } else if let Some(adapted) = adapted {
            adapted.suggest(&candidates, wanted)
        } else if has_columns && log_seconds.iter().all(is_equal) {
            // Nothing tells configurations apart but their columns.
            wanted.filling(&candidates, &self.measured)
        } else if has_columns && scores.expectation.is_some() {
            wanted.best_far_apart(&candidates, &self.measured)
        } else {
            wanted.by_model(candidates.ranking)
        };
        let deviation = |config: usize| Some(adapted?.predict(&points(&[config])[0]).deviation);
        let first = self.decided.first.iter().map(|&config| Suggestion {
            config,
            reason: Reason::Model,
            improvement: 0.0,
        });
        let described = first.chain(suggestions).map(|suggestion| SuggestedConfig {
            score: log_seconds[suggestion.config],
            deviation: deviation(suggestion.config),
            suggestion,
        });
        described.collect()
    }

    fn scores(&self) -> Scores<'_> {
        let predictor = self.predictor.as_ref();
        Scores {
            values: &self.from.scores,
            unit: self.unit,
            expectation: predictor.and_then(|predictor| predictor.expectation.as_ref()),
        }
    }

    /// The distinct configurations that were not measured, by ascending predicted time.
    fn ranking(&self) -> Vec<usize> {
        // Only the first of several equal configurations is suggested, because its run time is that
        // of all of them.
        let mut may_be: Vec<bool> = vec![false; self.from.scores.len()];
        for first in self.from.configurations.batch().distinct().first {
            may_be[first] = true;
        }
        for &config in &self.decided.left_out {
            may_be[config] = false;
        }
        self.leave_out_measured(&mut may_be);
        let ranking = rank(&self.from.log_seconds, 0).into_iter();
        let ranking = ranking.map(|config| config as usize);
        ranking.filter(|&config| may_be[config]).collect()
    }

    fn leave_out_measured(&self, may_be: &mut [bool]) {
        if let Configurations::Layout(batch) = &*self.from.configurations {
            // Rows tell layouts apart without making a point of each.
            let rows = LayoutRows::new(&self.measured, batch);
            for (config, may_be) in pace::in_steps(64, may_be.iter_mut().enumerate()) {
                *may_be &= !rows.contain(batch.row(config));
            }
            return;
        }
        let mut measured: Vec<&Point> = self.measured.iter().collect();
        measured.sort_by(|one, other| one.compare_configuration(other));
        let is_measured = |point: &Point| {
            let found = measured.binary_search_by(|each| each.compare_configuration(point));
            found.is_ok()
        };
        // Configurations are compared whatever their scores are, so that no expectation is
        // computed.
        let scores = Scores {
            expectation: None,
            ..self.scores()
        };
        let all: Vec<usize> = (0..may_be.len()).filter(|&config| may_be[config]).collect();
        // Few points are there at a time: a configuration may take less memory than its point.
        for some in pace::in_steps(1, all.chunks(AT_ONCE)) {
            let points = points(&self.from.configurations, some, &scores);
            for (point, &config) in points.iter().zip(some) {
                may_be[config] = !is_measured(point);
            }
        }
    }
}
