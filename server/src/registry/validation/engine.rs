use std::{io, sync::Arc, time::Duration};

use futures::executor::block_on;
use hlorank_graph::{Configurations, SegmentedGraph};

use super::limit::LoadLimit;
use crate::{
    compute::{Class, ComputePool, Worker, WorkerFailed, yield_to_others},
    engine::{Engine, EngineError, Terms},
    model::{Model, Rejection},
};

/// An engine without a cache, separate from the one that serves, on one thread that uses the sessions of one worker.
/// It is kept between validations, because threads that come and go fragment the memory.
pub(in crate::registry) struct ValidationEngine {
    pool: Arc<ComputePool>,
    engine: Engine,
}

impl ValidationEngine {
    /// Starts a thread beside those of the pool that serves.
    pub(in crate::registry) fn new(serving: &ComputePool, worker: Worker) -> io::Result<Self> {
        let pool = Arc::new(serving.background(worker)?);
        Ok(Self {
            engine: Engine::without_cache(Arc::clone(&pool)),
            pool,
        })
    }

    /// Gives the thread a low priority, which a replacement thread inherits.
    pub(in crate::registry) fn yield_to_others(&self) {
        self.pool.spawn(Class::Bulk, |_| yield_to_others());
    }

    /// Waits until work that was dropped has ended, or the thread was replaced.
    pub(in crate::registry) fn wait_until_free(&self) {
        // An error means that the pool was dropped.
        let _ = block_on(self.pool.run(Class::Bulk, |_| ()));
    }

    /// Does work on the thread. If it does not end within the limit, the thread is left behind and replaced.
    pub(in crate::registry) fn run<T: Send + 'static>(
        &self,
        limit: &LoadLimit,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Rejection> {
        // The pool needs the limit, too: to drop the future does not stop work that has started.
        limit
            .wait(self.pool.run_within(limit.left(), work))?
            .map_err(worker_failed)
    }

    /// Returns the scores of all configurations.
    pub(super) fn score(
        &self,
        limit: &LoadLimit,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        configurations: Configurations,
    ) -> Result<Result<Vec<f32>, EngineError>, Rejection> {
        let evaluated = self
            .engine
            .score(model, graph, configurations, Terms::default());
        let evaluated = limit.wait(evaluated)?;
        Ok(evaluated.map(|evaluation| evaluation.scores))
    }

    /// Returns the time of the device's clock on the thread.
    pub(super) fn clock(&self, limit: &LoadLimit) -> Result<Duration, Rejection> {
        let clock = self.pool.device().clock;
        let time = limit.wait(self.pool.run(Class::Bulk, move |_| clock()))?;
        Ok(time.map_err(worker_failed)?.value)
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "what a Result's error is mapped with"
)]
fn worker_failed(error: WorkerFailed) -> Rejection {
    Rejection::new("SERVER_FAILED", error.to_string())
}
