use std::{io, sync::Arc, time::Duration};

use futures::executor::block_on;
use hlorank_graph::{Configurations, SegmentedGraph};

use crate::{
    compute::{Class, ComputePool, Worker, WorkerFailed, yield_to_others},
    engine::{Engine, EngineError, Terms},
    model::Model,
};

/// An engine without a cache, separate from the one that serves, on one thread that uses the sessions of one worker.
/// It is kept between validations, because threads that come and go fragment the memory.
pub(in crate::registry) struct ValidationEngine {
    pool: Arc<ComputePool>,
    engine: Engine,
}

impl ValidationEngine {
    pub(in crate::registry) fn new(worker: Worker) -> io::Result<Self> {
        let pool = Arc::new(ComputePool::background(worker)?);
        Ok(Self { engine: Engine::without_cache(Arc::clone(&pool)), pool })
    }

    /// Gives the thread a low priority, which a replacement thread inherits.
    pub(in crate::registry) fn yield_to_others(&self) {
        self.pool.spawn(Class::Bulk, |_| yield_to_others());
    }

    /// Returns the pool of the one thread.
    pub(in crate::registry) fn pool(&self) -> &Arc<ComputePool> {
        &self.pool
    }

    /// Returns the scores of all configurations.
    pub(super) fn score(
        &self,
        model: &Arc<Model>,
        graph: &Arc<SegmentedGraph>,
        configurations: Configurations,
    ) -> Result<Vec<f32>, EngineError> {
        let read = move || Ok::<_, EngineError>(configurations);
        Ok(block_on(self.engine.score(model, graph, read, Terms::default()))?.scores)
    }

    /// Returns the time of the device's clock on the thread.
    pub(super) fn clock(&self) -> Result<Duration, WorkerFailed> {
        let clock = self.pool.device().clock;
        Ok(block_on(self.pool.run(Class::Bulk, move |_| clock()))?.value)
    }
}
