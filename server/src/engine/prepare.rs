//! What is known of a batch before anything is evaluated. A large batch takes many milliseconds to look at, so it is
//! done in turns with other calls.

use std::{
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use hlorank_graph::{Configurations, SegmentedGraph, TooManyRows};

use super::{
    Engine, EngineError, Terms,
    embeddings::{Embeddings, LookedUp},
    plan::{Plan, Planner},
};
use crate::{
    compute::{Class, Computed},
    memory::{Held, Memory},
    model::Model,
};

/// What has to be evaluated, and what the cache has of it.
pub(super) struct Prepared {
    pub(super) plan: Arc<Plan>,
    pub(super) looked_up: LookedUp,
    /// The embeddings of the call.
    pub(super) held: Held,
}

/// A batch that is looked at.
struct Preparation {
    model: Arc<Model>,
    graph: Arc<SegmentedGraph>,
    embeddings: Arc<Embeddings>,
    memory: Arc<Memory>,
    stage: Stage,
}

enum Stage {
    Planning(Box<Planner>),
    LookingUp(Prepared),
}

type Turn = ControlFlow<Prepared, Preparation>;

/// How long a worker looks at one batch before it is another call's turn.
const TURN: Duration = Duration::from_millis(1);

/// Bytes that the embeddings of one call may take.
const MAX_EMBEDDING_BYTES: usize = 1 << 30;

impl Engine {
    /// Looks at the configurations that `read` gives. A large batch is refused at once where the queue is full.
    pub(super) async fn prepare<E: From<EngineError> + Send + 'static>(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        read: impl FnOnce() -> Result<Configurations, E> + Send + 'static,
        terms: Terms,
    ) -> Result<Computed<Prepared>, E> {
        if terms.class == Class::Bulk {
            self.backlog.check_room(terms)?;
        }
        let (model, graph) = (Arc::clone(model), Arc::clone(graph));
        let (embeddings, memory) = (Arc::clone(&self.embeddings), Arc::clone(&self.memory));
        let first = self.pool.run(terms.class, move |_| {
            let until = Instant::now() + TURN;
            let stage = Stage::Planning(Box::new(Planner::new(&graph, read()?)));
            Ok::<_, E>(Preparation { model, graph, embeddings, memory, stage }.go_on(until)?)
        });
        let Computed { value: turn, waited } = first.await.map_err(EngineError::from)?;
        let mut turn = turn?;
        loop {
            let preparation = match turn {
                ControlFlow::Break(prepared) => return Ok(Computed { value: prepared, waited }),
                ControlFlow::Continue(preparation) => preparation,
            };
            let next = self.pool.run(terms.class, move |_| preparation.go_on(Instant::now() + TURN));
            turn = next.await.map_err(EngineError::from)?.value?;
        }
    }
}

impl Preparation {
    fn go_on(self, until: Instant) -> Result<Turn, EngineError> {
        let Self { model, graph, embeddings, memory, stage } = self;
        let mut prepared = match stage {
            Stage::LookingUp(prepared) => prepared,
            Stage::Planning(mut planner) => {
                if !planner.advance(&graph, until)? {
                    let stage = Stage::Planning(planner);
                    return Ok(ControlFlow::Continue(Self { model, graph, embeddings, memory, stage }));
                }
                let plan = Arc::new(planner.finish(&graph));
                check_rows(&model, &plan)?;
                let held = memory.hold(plan.rows.len() * embedding_bytes(&model))?;
                Prepared { plan, looked_up: LookedUp::default(), held }
            }
        };
        if embeddings.look_up(&model, &graph, &prepared.plan, &mut prepared.looked_up, until) {
            return Ok(ControlFlow::Break(prepared));
        }
        let stage = Stage::LookingUp(prepared);
        Ok(ControlFlow::Continue(Self { model, graph, embeddings, memory, stage }))
    }
}

/// That the embeddings of a plan's rows are not too much for one call.
pub(super) fn check_rows(model: &Model, plan: &Plan) -> Result<(), TooManyRows> {
    if plan.rows.len() > MAX_EMBEDDING_BYTES / embedding_bytes(model) { Err(TooManyRows) } else { Ok(()) }
}

/// Of one embedding; at least 1.
fn embedding_bytes(model: &Model) -> usize {
    (model.manifest().embedding_size * size_of::<f32>()).max(1)
}
