use std::{sync::Arc, time::Instant};

use hlorank_graph::{Configurations, EncodedBatch, LayoutBatch};

use super::{
    CombinedPart, SuggestedConfig,
    choice::{Choice, choosing_bytes, renumber},
    search::search,
};
use crate::{
    adaptation::SuggestionRequest,
    call::CallError,
    compute::Class,
    engine::{Engine, Terms},
    learning::Lesson,
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
    let (mut evaluation, mut from) = evaluator.predict(all, session.terms(class)).await?;
    session.see(evaluator.seen(&from.scores));
    let mut drawn = 0..from.scores.len();
    // The memory of the combinations is held until the choice is made.
    let mut held = None;
    if let Some(combined) = combined {
        let terms = Terms {
            continues_request: true,
            ..session.terms(class)
        };
        let result = search(&evaluator, from, combined, &mut wanted, terms).await?;
        evaluation.reuse += result.reuse;
        from = result.visited;
        drawn = result.drawn;
        held = Some(result.held);
    }
    let choice = Choice {
        from,
        drawn,
        measured: session.lesson().map(Lesson::points).unwrap_or_default(),
        predictor: evaluator.predictor,
        unit: evaluator.model.manifest().unit(),
    };
    let (mut suggested, configurations) = choose(&evaluator.engine, choice, wanted).await?;
    drop(held);
    let combinations = combined.and_then(|_| renumber(&mut suggested, &configurations));
    Ok(Suggestions {
        scored: session.record(evaluation, asked),
        suggested,
        combinations,
    })
}

/// Makes a choice on a compute thread, while the memory that it takes is held. Returns what is chosen, and from which.
async fn choose(
    engine: &Engine,
    choice: Choice,
    wanted: SuggestionRequest,
) -> Result<(Vec<SuggestedConfig>, Arc<Configurations>), CallError> {
    let others = wanted.count + wanted.pending.len();
    let bytes = choosing_bytes(choice.measured.len(), others);
    let _held = engine.memory().hold(bytes)?;
    let choose = move |_| (choice.suggest(&wanted), choice.from.configurations);
    Ok(engine.pool().run(Class::Bulk, choose).await?.value)
}
