use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, LayoutBatch};

use super::{
    CombinedPart, SuggestedConfig,
    choice::{Choice, choosing_bytes, renumber},
    search::{SearchResult, search},
};
use crate::{
    adaptation::{Point, SuggestionRequest},
    call::CallError,
    compute::Class,
    learning::{Evaluator, Lesson},
    session::{ScoredBatch, Session},
};

/// What to measure next.
pub(crate) struct Suggestions {
    /// The batch to choose from.
    pub(crate) scored: ScoredBatch,
    pub(crate) suggested: Vec<SuggestedConfig>,
    /// The combinations, in the order of the suggestions, if combinations were asked for.
    pub(crate) combinations: Option<LayoutBatch>,
}

/// Chooses which configurations of a batch to measure next, or which combinations of them.
pub(crate) async fn suggest(
    session: &mut Session,
    batch: EncodedBatch,
    mut wanted: SuggestionRequest,
    combined: Option<CombinedPart>,
) -> Result<Suggestions, CallError> {
    let asked = Instant::now();
    let (class, all) = session.read(batch).await?;
    let evaluator = session.evaluator();
    let (mut evaluation, predicted) = evaluator.predict(all, session.terms(class)).await?;
    session.add_sample(evaluator.sample_of(&predicted, class).await?);
    let terms = session.terms_to_continue(class);
    let found = search(&evaluator, predicted, combined, &mut wanted, terms).await?;
    evaluation.reuse += found.reuse;
    let measured = session.lesson().map(Lesson::points).unwrap_or_default();
    let (mut suggested, configurations) = choose(evaluator, found, measured, wanted).await?;
    let combinations = combined.and_then(|_| renumber(&mut suggested, &configurations));
    Ok(Suggestions {
        scored: session.record(evaluation, asked),
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
