//! The threads that do everything that takes processor time, so that the async threads never wait for it.

use std::{
    num::NonZeroUsize,
    time::{Duration, Instant},
};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use tokio::sync::oneshot;

/// A fixed number of worker threads that take work in the order it came.
pub struct ComputePool {
    threads: ThreadPool,
}

/// Which worker is running, from 0: what picks its own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub usize);

/// The work panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a worker failed while computing")]
pub struct WorkerFailed;

/// A result, and how long its work waited for a worker.
pub struct Computed<T> {
    /// What the work returned.
    pub value: T,
    /// From submission to start.
    pub waited: Duration,
}

impl ComputePool {
    /// Starts the threads.
    pub fn new(workers: NonZeroUsize) -> Result<Self, ThreadPoolBuildError> {
        let threads = ThreadPoolBuilder::new()
            .num_threads(workers.get())
            .thread_name(|worker| format!("compute-{worker}"))
            // The panic message is on standard error already; the one who waits gets `WorkerFailed`.
            .panic_handler(|_| tracing::error!("a worker panicked"))
            .build()?;
        Ok(Self { threads })
    }

    /// Number of threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.threads.current_num_threads()
    }

    /// Has a worker run work that nobody waits for.
    pub fn spawn(&self, work: impl FnOnce(Worker) + Send + 'static) {
        self.threads.spawn_fifo(|| work(Worker(rayon::current_thread_index().unwrap_or(0))));
    }

    /// Runs work on a worker. Dropping the future before the work starts cancels it.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Worker) -> T + Send + 'static,
    ) -> Result<Computed<T>, WorkerFailed> {
        let (sender, receiver) = oneshot::channel();
        let submitted = Instant::now();
        self.spawn(move |worker| {
            if sender.is_closed() {
                return;
            }
            let waited = submitted.elapsed();
            let value = work(worker);
            // An error means that nobody waits any more.
            let _ = sender.send(Computed { value, waited });
        });
        receiver.await.map_err(|_| WorkerFailed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> ComputePool {
        ComputePool::new(NonZeroUsize::new(2).unwrap()).unwrap()
    }

    #[tokio::test]
    async fn work_runs_on_a_worker() {
        let computed = pool().run(|Worker(worker)| worker).await.unwrap();
        assert!(computed.value < 2);
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_work_only() {
        let pool = pool();
        assert!(pool.run(|_| panic!("on purpose")).await.is_err());
        assert_eq!(pool.run(|_| 7).await.unwrap().value, 7);
    }
}
