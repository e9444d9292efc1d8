//! Searches the combinations of a batch for those with the lowest predicted times.

use std::{mem::take, ops::Range, sync::Arc};

use hlorank_adaptation::SuggestionRequest;
use hlorank_graph::{Configurations, LayoutBatch, SegmentedGraph};

use super::{CombinedPart, space::Space};
use crate::{
    call::{CONFIG_BYTES, CallError},
    compute::Class,
    engine::{Terms, rank},
    learning::{Evaluator, PredictedBatch},
    memory::HeldBytes,
    model::ModelKind,
    outcome::Reuse,
};

/// What a search found.
pub(super) struct SearchResult {
    /// Every combination that was scored.
    pub(super) visited: PredictedBatch,
    /// Those that were drawn at random.
    pub(super) drawn: Range<usize>,
    /// How much work the search shared, without the scoring of the batch before it.
    pub(super) reuse: Reuse,
    /// The memory of the combinations, which is held until the choice is made.
    _held: Option<HeldBytes>,
}

/// The combinations that were scored until now.
#[derive(Default)]
struct Visits {
    rows: Vec<u16>,
    scores: Vec<f32>,
    log_seconds: Vec<f32>,
}

/// Number of configurations, those with the lowest predicted times, of which the expected improvement is computed.
pub(super) const CONSIDERED: usize = 1_024;

/// Maximum number of steps of a search. Graphs of measured programs need two to six.
const STEPS: usize = 16;

/// Number of copies of the tables: those of the space, of a step, of the engine's plan of it, and of all that were visited.
const TABLES: usize = 4;

/// Number of combinations that are drawn at random.
const DRAWN: usize = 256;

/// A search in progress.
struct Search<'a> {
    evaluator: &'a Evaluator,
    space: Space,
    terms: Terms,
    visits: Visits,
    reuse: Reuse,
}

/// Searches from the configuration with the lowest predicted time. Each step tries every change of
/// one place, then the best changes of several places together, and goes on from the best of all.
/// The search ends where no change of one place lowers the predicted time. `wanted.pending` is
/// renumbered. Nothing is searched if nothing is combined.
pub(super) async fn search(
    evaluator: &Evaluator,
    from: PredictedBatch,
    combined: Option<CombinedPart>,
    wanted: &mut SuggestionRequest,
    terms: Terms,
) -> Result<SearchResult, CallError> {
    let Some(combined) = combined else {
        return Ok(SearchResult {
            drawn: 0..from.scores.len(),
            visited: from,
            reuse: Reuse::default(),
            _held: None,
        });
    };
    let manifest = evaluator.model.manifest();
    // A changed place would take another evaluation of the whole graph, and a search takes thousands.
    if let ModelKind::WholeGraph(_) = manifest.kind {
        let why = format!("model `{}` scores whole graphs", manifest.name);
        return Err(CallError::SourceUnsupported { why });
    }
    let engine = &evaluator.engine;
    let graph = Arc::clone(&evaluator.graph);
    // The visits begin with what is pending, in this order.
    let pending = take(&mut wanted.pending);
    wanted.pending = (0..pending.len()).collect();
    let begin = move |_| begin(&graph, &from, &pending, combined);
    let (space, visits) = engine.pool().run(Class::Bulk, begin).await?.value?;
    let held = hold(evaluator, &space)?;
    let mut search = Search {
        evaluator,
        space,
        terms,
        visits,
        reuse: Reuse::default(),
    };
    let lowest = search.descend().await?;
    // Random changes of the lowest combination.
    let start = search.visits.log_seconds.len();
    let random = search
        .space
        .random(search.visits.row(lowest), DRAWN, wanted.seed);
    search.visit(random).await?;
    let drawn = start..search.visits.log_seconds.len();
    Ok(SearchResult {
        visited: PredictedBatch {
            configurations: Arc::new(Configurations::Layout(layouts(
                &search.space,
                search.visits.rows,
            )?)),
            scores: search.visits.scores,
            log_seconds: search.visits.log_seconds,
        },
        drawn,
        reuse: search.reuse,
        _held: Some(held),
    })
}

impl Search<'_> {
    /// Changes the best combination step by step. Returns the number of the last one.
    async fn descend(&mut self) -> Result<usize, CallError> {
        let mut lowest = self.visits.lowest();
        for _ in 0..STEPS {
            let row = self.visits.row(lowest).to_vec();
            let predicted = self.visits.log_seconds[lowest];
            let singles = self.visits.log_seconds.len();
            let (changes, rows) = self.space.single_changes(&row);
            self.visit(rows).await?;
            let gain = |each: usize| predicted - self.visits.log_seconds[singles + each];
            let better = self.space.best_of_places(&changes, gain);
            // Changes that are improvements alone need not be one together, so that the best two,
            // three and so on are scored, and the lowest of all is where the next step begins.
            let together = self.space.changed_together(&row, &better);
            self.visit(together).await?;
            if better.is_empty() {
                break;
            }
            lowest = self.visits.lowest();
        }
        Ok(lowest)
    }

    /// Scores rows and adds them to those that were visited.
    async fn visit(&mut self, rows: Vec<u16>) -> Result<(), CallError> {
        if rows.is_empty() {
            return Ok(());
        }
        let batch = Configurations::Layout(layouts(&self.space, rows.clone())?);
        let predicted = self.evaluator.predict(Arc::new(batch), self.terms);
        let (evaluation, predicted) = predicted.await?;
        self.reuse += evaluation.reuse;
        self.visits.rows.extend(rows);
        self.visits.scores.extend(predicted.scores);
        self.visits.log_seconds.extend(predicted.log_seconds);
        Ok(())
    }
}

/// Holds what a search of a space takes at most, before it begins.
fn hold(evaluator: &Evaluator, space: &Space) -> Result<HeldBytes, CallError> {
    let row_bytes = evaluator.graph.slots() * size_of::<u16>() + CONFIG_BYTES;
    let rows = STEPS * space.changes() + CONSIDERED + DRAWN;
    let bytes = rows * row_bytes + TABLES * space.table_bytes();
    Ok(evaluator.engine.memory().hold(bytes)?)
}

/// Returns the space of a batch, and its pending and best configurations.
fn begin(
    graph: &SegmentedGraph,
    from: &PredictedBatch,
    pending: &[usize],
    combined: CombinedPart,
) -> Result<(Space, Visits), CallError> {
    let Configurations::Layout(batch) = &*from.configurations else {
        let why = "a tile belongs to a whole kernel, so that there are no parts to combine";
        return Err(CallError::SourceUnsupported {
            why: why.to_owned(),
        });
    };
    let ranking = rank(&from.log_seconds, 0).into_iter();
    let ranking: Vec<usize> = ranking.map(|config| config as usize).collect();
    let best = ranking.iter().take(CONSIDERED);
    let visits = Visits::new(batch, from, pending.iter().chain(best));
    Ok((Space::new(graph, batch, &ranking, combined), visits))
}

fn layouts(space: &Space, rows: Vec<u16>) -> Result<LayoutBatch, CallError> {
    space
        .batch(rows)
        .map_err(|source| CallError::Configuration {
            field: "batch",
            source,
        })
}

impl Visits {
    /// Configurations of a batch that were scored before the search.
    fn new<'a>(
        batch: &LayoutBatch,
        from: &PredictedBatch,
        configs: impl Iterator<Item = &'a usize>,
    ) -> Self {
        let mut visits = Self::default();
        for &config in configs {
            visits.rows.extend_from_slice(batch.row(config));
            visits.scores.push(from.scores[config]);
            visits.log_seconds.push(from.log_seconds[config]);
        }
        visits
    }

    fn row(&self, number: usize) -> &[u16] {
        let slots = self.rows.len() / self.log_seconds.len();
        &self.rows[number * slots..][..slots]
    }

    /// The number of the combination with the lowest predicted time.
    fn lowest(&self) -> usize {
        rank(&self.log_seconds, 1)
            .first()
            .map_or(0, |&number| number as usize)
    }
}
