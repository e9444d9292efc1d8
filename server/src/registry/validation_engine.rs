use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::executor::block_on;
use hlorank_graph::{Configurations, SegmentedGraph};
use tokio::runtime::Handle;

use crate::{
    compute::{Class, ComputePool, Worker, WorkerFailed, yield_to_others},
    device::thread_processor_time,
    engine::{Engine, EngineError, Terms},
    model::{Model, Rejection},
};

/// An engine without a cache, separate from the one that serves, on one thread that uses the sessions of one worker.
/// It is kept between validations, because threads that come and go fragment the memory.
pub(super) struct ValidationEngine {
    pool: Arc<ComputePool>,
    engine: Engine,
}

impl ValidationEngine {
    /// Starts a thread beside those of the pool that serves.
    pub(super) fn new(serving: &ComputePool, worker: Worker) -> io::Result<Self> {
        let pool = Arc::new(serving.background(worker)?);
        Ok(Self {
            engine: Engine::without_cache(Arc::clone(&pool)),
            pool,
        })
    }

    /// Gives the thread a low priority, which a replacement thread inherits.
    pub(super) fn yield_to_others(&self) {
        self.pool.spawn(Class::Bulk, |_| yield_to_others());
    }

    /// Waits until work that was dropped has ended, or the thread was replaced.
    pub(super) fn wait_until_free(&self) {
        // An error means that the pool was dropped.
        let _ = block_on(self.pool.run(Class::Bulk, |_| ()));
    }

    /// Does work on the thread. If it does not end within the limit, the thread is left behind and replaced.
    pub(super) fn run<T: Send + 'static>(
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
        let engine = &self.engine;
        let evaluated = engine.score(model, graph, configurations, Terms::default());
        let evaluated = limit.wait(evaluated)?;
        Ok(evaluated.map(|evaluation| evaluation.scores))
    }

    /// Returns the time of the clock of runs on the thread.
    pub(super) fn clock(&self, limit: &LoadLimit) -> Result<Duration, Rejection> {
        let time = limit.wait(self.pool.run(Class::Bulk, |_| thread_processor_time()))?;
        Ok(time.map_err(worker_failed)?.value)
    }
}

fn worker_failed(error: WorkerFailed) -> Rejection {
    Rejection::new("SERVER_FAILED", error.to_string())
}

/// Bounds the time of loading and checking one version.
pub(super) struct LoadLimit {
    timers: Handle,
    deadline: Instant,
    limit: Duration,
    is_wanted: Arc<dyn Fn() -> bool>,
}

/// Interval at which it is checked whether the version is still wanted.
const INTERVAL: Duration = Duration::from_millis(50);

impl LoadLimit {
    pub(super) fn new(
        timers: Handle,
        limit: Duration,
        is_wanted: impl Fn() -> bool + 'static,
    ) -> Self {
        Self {
            timers,
            deadline: Instant::now() + limit,
            limit,
            is_wanted: Arc::new(is_wanted),
        }
    }

    /// Returns a limit of a part of the time.
    pub(super) fn part(&self, parts: u32) -> Self {
        let limit = self.limit / parts;
        Self {
            timers: self.timers.clone(),
            deadline: Instant::now() + limit,
            limit,
            is_wanted: Arc::clone(&self.is_wanted),
        }
    }

    /// Waits for work. At the limit, or if the version is no longer wanted, the work is dropped.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Rejection> {
        let reached = async {
            loop {
                if !(self.is_wanted)() {
                    let message = "it was removed or changed while it was checked";
                    return Rejection::new("SERVER_FAILED", message);
                }
                if self.left().is_zero() {
                    let limit = self.limit;
                    let message = format!(
                        "it was not loaded and checked within {limit:?} (--max-load-seconds)"
                    );
                    return Rejection::new("LOAD_TIMEOUT", message);
                }
                tokio::time::sleep(INTERVAL.min(self.left())).await;
            }
        };
        self.timers.block_on(async {
            tokio::select! {
                // Work that is done counts, even if the limit is reached at the same time.
                biased;
                value = work => Ok(value),
                rejection = reached => Err(rejection),
            }
        })
    }

    /// Returns the time that is left.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
