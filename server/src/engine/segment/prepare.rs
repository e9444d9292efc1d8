//! Everything that is found out about a batch before anything is evaluated. A large batch takes many milliseconds, so it
//! takes turns with other calls.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{SegmentedGraph, TooManyRows, pace};

use super::{
    embeddings::{CacheLookup, Embeddings},
    plan::{Plan, Planner},
};
use crate::{
    compute::{Class, ComputePool, Computed},
    engine::{
        BatchPart, EngineError, Terms,
        backlog::{Backlog, Work},
        resources::Resources,
    },
    memory::{Held, Memory},
    model::SegmentModel,
};

/// What has to be evaluated, and what the cache has of it.
pub(super) struct PreparedBatch {
    pub(super) model: Arc<SegmentModel>,
    pub(super) graph: Arc<SegmentedGraph>,
    pub(super) plan: Arc<Plan>,
    pub(super) looked_up: CacheLookup,
    /// Memory for the embeddings of the call, and for its kernels.
    pub(super) held: Held,
}

/// Prepares one batch.
pub(super) struct Preparation {
    model: Arc<SegmentModel>,
    graph: Arc<SegmentedGraph>,
    embeddings: Arc<Embeddings>,
    memory: Arc<Memory>,
}

/// How far a preparation has come.
enum Progress {
    /// With the queued work that planning is.
    Planning(Preparation, Box<Planner>, Work),
    LookingUp(Preparation, PreparedBatch),
    Done(PreparedBatch),
}

/// How long a worker prepares one batch before it is another call's turn, if one waits.
const TURN: Duration = Duration::from_millis(1);

/// Rows that take as long to plan as one padded node takes to evaluate. A row takes less than half a microsecond, and a node
/// some tens of them in a large segment.
const PLANNED_PER_NODE: usize = 64;

/// Maximum number of bytes for the embeddings of one call.
const MAX_EMBEDDING_BYTES: usize = 1 << 30;

impl Preparation {
    /// Fails if the graph cannot be padded as the model needs it.
    pub(super) fn new(
        model: &Arc<SegmentModel>,
        graph: &Arc<SegmentedGraph>,
        embeddings: &Arc<Embeddings>,
        memory: &Arc<Memory>,
    ) -> Result<Self, EngineError> {
        check_pad(model, graph)?;
        Ok(Self {
            model: Arc::clone(model),
            graph: Arc::clone(graph),
            embeddings: Arc::clone(embeddings),
            memory: Arc::clone(memory),
        })
    }

    /// Prepares configurations. A large batch is refused at once if the queue is full.
    pub(super) async fn run(
        self,
        resources: &Resources,
        part: BatchPart,
        terms: Terms,
    ) -> Result<Computed<PreparedBatch>, EngineError> {
        check_room(resources, terms)?;
        let backlog = Arc::clone(&resources.backlog);
        let pool = Arc::clone(&resources.pool);
        let first = resources.pool.run(terms.class, move |_| {
            self.begin(part, &backlog, terms)?.advance_alone(&pool)
        });
        // Only the first wait counts as such. Later ones are part of the preparation.
        let Computed { value, waited } = first.await?;
        let value = value?.finish(resources, terms.class).await?;
        Ok(Computed { value, waited })
    }

    /// Takes the configurations, and adds their planning to the queued work.
    fn begin(
        self,
        part: BatchPart,
        backlog: &Arc<Backlog>,
        terms: Terms,
    ) -> Result<Progress, EngineError> {
        let planner = Box::new(Planner::new(&self.graph, part.into_configurations()));
        // The distinct rows are not known yet, so every row of every configuration counts.
        let rows = planner
            .configs()
            .saturating_mul(self.graph.rows_per_config());
        let digest = self.model.facts().digest;
        let work = backlog.add(digest, self.graph.hash, rows / PLANNED_PER_NODE, terms)?;
        Ok(Progress::Planning(self, planner, work))
    }

    /// Holds the memory of the embeddings of a plan, before the lookup takes it.
    fn look_up_all(self, plan: Arc<Plan>) -> Result<Progress, EngineError> {
        check_rows(&self.model, &plan)?;
        let held = self
            .memory
            .hold(plan.rows.len() * embedding_bytes(&self.model) + plan.bytes())?;
        let prepared = PreparedBatch {
            model: Arc::clone(&self.model),
            graph: Arc::clone(&self.graph),
            plan,
            looked_up: CacheLookup::default(),
            held,
        };
        Ok(Progress::LookingUp(self, prepared))
    }

    /// Looks up the next rows, until `until` or a little longer.
    fn look_up(self, mut prepared: PreparedBatch, until: Instant) -> Progress {
        let is_done = self.embeddings.look_up(
            &prepared.model,
            &prepared.graph,
            &prepared.plan,
            &mut prepared.looked_up,
            until,
        );
        if is_done {
            Progress::Done(prepared)
        } else {
            Progress::LookingUp(self, prepared)
        }
    }
}

impl Progress {
    /// Prepares to the end, in turns with other work: each further turn waits in the queue of its
    /// class.
    async fn finish(
        mut self,
        resources: &Resources,
        class: Class,
    ) -> Result<PreparedBatch, EngineError> {
        loop {
            if let Self::Done(prepared) = self {
                return Ok(prepared);
            }
            let pool = Arc::clone(&resources.pool);
            let next = resources
                .pool
                .run(class, move |_| self.advance_alone(&pool));
            self = next.await?.value?;
        }
    }

    /// Prepares turn after turn, as long as no other work waits.
    fn advance_alone(mut self, pool: &ComputePool) -> Result<Self, EngineError> {
        loop {
            self = self.advance(Instant::now() + TURN)?;
            if matches!(self, Self::Done(_)) || pool.queued() > 0 {
                return Ok(self);
            }
            // Stops the work of a cancelled call.
            pace::pause();
        }
    }

    /// Prepares until `until`, or a little longer.
    fn advance(self, until: Instant) -> Result<Self, EngineError> {
        match self {
            Self::Planning(preparation, mut planner, work) => {
                if !planner.advance(&preparation.graph, until)? {
                    return Ok(Self::Planning(preparation, planner, work));
                }
                // What is missing is queued on its own, once the lookup has shown how much that is.
                drop(work);
                let plan = Arc::new(planner.finish());
                preparation.look_up_all(plan)?.advance(until)
            }
            Self::LookingUp(preparation, prepared) => Ok(preparation.look_up(prepared, until)),
            Self::Done(prepared) => Ok(Self::Done(prepared)),
        }
    }
}

/// Checks that the graph can be padded as the model needs it.
pub(super) fn check_pad(model: &SegmentModel, graph: &SegmentedGraph) -> Result<(), EngineError> {
    if graph.can_pad(model.facts().pad) {
        Ok(())
    } else {
        Err(EngineError::pad_unknown(model.facts()))
    }
}

/// Refuses a large batch if the queue is full. How much work a small one is shows soon.
pub(super) fn check_room(resources: &Resources, terms: Terms) -> Result<(), EngineError> {
    match terms.class {
        Class::Bulk => resources.backlog.check_room(terms),
        Class::Interactive => Ok(()),
    }
}

/// Checks that the embeddings of a plan's rows are not too much for one call.
fn check_rows(model: &SegmentModel, plan: &Plan) -> Result<(), TooManyRows> {
    if plan.rows.len() > MAX_EMBEDDING_BYTES / embedding_bytes(model) {
        Err(TooManyRows)
    } else {
        Ok(())
    }
}

fn embedding_bytes(model: &SegmentModel) -> usize {
    model.settings().embedding_size * size_of::<f32>()
}
