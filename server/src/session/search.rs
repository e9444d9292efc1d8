//! Searches the combinations of a batch for those with the lowest predicted times.

use std::{mem::take, ops::Range, sync::Arc};

use hlorank_graph::{Configurations, LayoutBatch};

use super::{
    Session, SessionError,
    score::CONFIG_BYTES,
    space::{Combined, Space},
    suggest::{CONSIDERED, Predicted},
};
use crate::{
    adaptation::Wanted,
    compute::Class,
    engine::{Terms, rank},
    memory::Held,
    model::ModelKind,
    outcome::Reuse,
};

/// What a search found.
pub(super) struct Found {
    /// Every combination that was scored.
    pub(super) visited: Predicted,
    /// Those that were drawn at random.
    pub(super) drawn: Range<usize>,
    /// How much work the search shared, without the scoring of the batch before it.
    pub(super) reuse: Reuse,
    /// The memory that it takes.
    pub(super) held: Held,
}

/// The combinations that were scored until now.
#[derive(Default)]
struct Visited {
    rows: Vec<u16>,
    scores: Vec<f32>,
    log_seconds: Vec<f32>,
}

/// Maximum number of steps of a search. Graphs of measured programs need two to six.
const STEPS: usize = 16;

/// Number of combinations that are drawn at random.
const DRAWN: usize = 256;

impl Session {
    /// Searches from the configuration with the lowest predicted time. Each step tries every change of one place, then the
    /// best changes of several places together, and goes on from the best of all. The search ends where no change of one
    /// place lowers the predicted time. `wanted.pending` is renumbered.
    pub(super) async fn search(
        &self,
        from: Predicted,
        combined: Combined,
        wanted: &mut Wanted,
        terms: Terms,
    ) -> Result<Found, SessionError> {
        if let ModelKind::WholeGraph(_) = self.model().manifest().kind() {
            let name = &self.model().manifest().name;
            return Err(SessionError::SourceUnsupported {
                why: format!("model `{name}` scores whole graphs"),
            });
        }
        let engine = self.sessions().engine();
        let (graph, pending, seed) = (self.shared_graph(), take(&mut wanted.pending), wanted.seed);
        wanted.pending = (0..pending.len()).collect();
        let begin = move |_| {
            begin(&from, &pending, |batch, ranking| {
                Space::of(&graph, batch, ranking, combined)
            })
        };
        let (space, mut visited) = engine.pool().run(Class::Bulk, begin).await?.value?;
        let row_bytes = self.graph().slots() * size_of::<u16>() + CONFIG_BYTES;
        let held = engine
            .memory()
            .hold((STEPS * space.changes() + CONSIDERED + DRAWN) * row_bytes)?;
        let mut reuse = Reuse::default();
        let mut lowest = visited.lowest();
        for _ in 0..STEPS {
            let (row, predicted) = (visited.row(lowest).to_vec(), visited.log_seconds[lowest]);
            let (changes, rows) = space.single_changes(&row);
            let singles = visited.log_seconds.len();
            self.visit(&space, rows, &mut visited, &mut reuse, terms)
                .await?;
            let better = space.best_of_places(&changes, |each| {
                predicted - visited.log_seconds[singles + each]
            });
            self.visit(
                &space,
                space.changed_together(&row, &better),
                &mut visited,
                &mut reuse,
                terms,
            )
            .await?;
            if better.is_empty() {
                break;
            }
            lowest = visited.lowest();
        }
        let start = visited.log_seconds.len();
        let drawn = space.random(visited.row(lowest), DRAWN, seed);
        self.visit(&space, drawn, &mut visited, &mut reuse, terms)
            .await?;
        let drawn = start..visited.log_seconds.len();
        Ok(Found {
            visited: visited.into_predicted(&space)?,
            drawn,
            reuse,
            held,
        })
    }

    /// Scores rows and adds them to those that were visited.
    async fn visit(
        &self,
        space: &Space,
        rows: Vec<u16>,
        visited: &mut Visited,
        reuse: &mut Reuse,
        terms: Terms,
    ) -> Result<(), SessionError> {
        if rows.is_empty() {
            return Ok(());
        }
        let batch = Configurations::Layout(layouts(space, rows.clone())?);
        let (evaluation, predicted) = self.predict(Arc::new(batch), terms).await?;
        *reuse += evaluation.reuse;
        visited.rows.extend(rows);
        visited.scores.extend(predicted.scores);
        visited.log_seconds.extend(predicted.log_seconds);
        Ok(())
    }
}

/// Returns the space of a batch, and its pending and best configurations.
fn begin(
    from: &Predicted,
    pending: &[usize],
    space: impl FnOnce(&LayoutBatch, &[usize]) -> Space,
) -> Result<(Space, Visited), SessionError> {
    let Configurations::Layout(batch) = &*from.configurations else {
        let why =
            "a tile belongs to a whole kernel, so that there are no parts to combine".to_owned();
        return Err(SessionError::SourceUnsupported { why });
    };
    let ranking: Vec<usize> = rank(&from.log_seconds, 0)
        .into_iter()
        .map(|config| config as usize)
        .collect();
    let mut visited = Visited::default();
    for &config in pending.iter().chain(ranking.iter().take(CONSIDERED)) {
        visited.rows.extend_from_slice(batch.row(config));
        visited.scores.push(from.scores[config]);
        visited.log_seconds.push(from.log_seconds[config]);
    }
    Ok((space(batch, &ranking), visited))
}

fn layouts(space: &Space, rows: Vec<u16>) -> Result<LayoutBatch, SessionError> {
    space
        .batch(rows)
        .map_err(|source| SessionError::Configuration {
            field: "batch",
            source,
        })
}

impl Visited {
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

    fn into_predicted(self, space: &Space) -> Result<Predicted, SessionError> {
        let configurations = Arc::new(Configurations::Layout(layouts(space, self.rows)?));
        Ok(Predicted {
            configurations,
            scores: self.scores,
            log_seconds: self.log_seconds,
        })
    }
}
