use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, LayoutBatch};

use super::{
    CombinedPart, SuggestedConfig,
    choice::{Choice, choosing_bytes, renumber},
    search::{SearchResult, search},
};
use crate::{
    adaptation::{Point, SuggestionRequest},
    call::{CallError, Position},
    compute::Class,
    learning::{Evaluator, Lesson, ScoredConfigs},
    session::{Query, Scored},
};

/// What to measure next.
pub(crate) struct Suggestions {
    /// The batch to choose from.
    pub(crate) scored: Scored,
    pub(crate) suggested: Vec<SuggestedConfig>,
    /// The combinations, in the order of the suggestions, if combinations were asked for.
    pub(crate) combinations: Option<LayoutBatch>,
}

/// Chooses which configurations of a batch to measure next, or which combinations of them.
pub(crate) async fn suggest(
    query: &Query,
    batch: EncodedBatch,
    mut wanted: SuggestionRequest,
    combined: Option<CombinedPart>,
) -> Result<Suggestions, CallError> {
    let asked = Instant::now();
    let batch = query.read(batch).await?;
    let class = batch.class;
    let evaluator = query.evaluator();
    let predicting = evaluator.predict(batch.configurations, query.terms(class, false));
    let (mut evaluation, predicted) = predicting.await?;
    let sample = evaluator.sample_of(&predicted, class).await?;
    let terms = query.terms(class, true);
    let found = search(&evaluator, predicted, combined, &mut wanted, terms).await?;
    evaluation.reuse += found.reuse;
    let measured = query
        .lesson
        .as_ref()
        .map(Lesson::points)
        .unwrap_or_default();
    let (mut suggested, configurations) = choose(evaluator, found, measured, wanted).await?;
    let combinations = combined.and_then(|_| renumber(&mut suggested, &configurations));
    let configs = ScoredConfigs {
        evaluation,
        deviations: Vec::new(),
        sample,
    };
    Ok(Suggestions {
        scored: query.scored(Position::default(), asked, configs, batch.seen, None),
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
) -> Result<(Vec<SuggestedConfig>, Arc<Configurations>), CallError> {
    let others = wanted.count + wanted.pending.len();
    let bytes = choosing_bytes(&evaluator.graph, measured.len(), others);
    let _held = evaluator.engine.memory().hold(bytes)?;
    let choice = Choice {
        from: found.visited,
        drawn: found.drawn,
        measured,
        predictor: evaluator.predictor,
        unit: evaluator.model.manifest().unit(),
    };
    let choose = move |_| (choice.suggest(&wanted), choice.from.configurations);
    let chosen = evaluator.engine.pool().run(Class::Bulk, choose);
    Ok(chosen.await?.value)
}
