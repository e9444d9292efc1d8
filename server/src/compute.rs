//! The threads that do everything that takes processor time, so that the async threads never wait for it.

use std::{
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, unbounded};
use tokio::sync::oneshot;
use tracing::Span;

/// A fixed number of worker threads that take work in the order it came, whoever it came from: calls take turns by
/// that. The threads end once the pool is dropped and its work is done.
pub struct ComputePool {
    work: Sender<Work>,
    workers: usize,
}

type Work = Box<dyn FnOnce(Worker) + Send>;

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
    pub fn new(workers: NonZeroUsize) -> io::Result<Self> {
        let (work, receiver) = unbounded();
        for worker in 0..workers.get() {
            let receiver: Receiver<Work> = receiver.clone();
            thread::Builder::new()
                .name(format!("compute-{worker}"))
                .spawn(move || work_through(&receiver, Worker(worker)))?;
        }
        Ok(Self { work, workers: workers.get() })
    }

    /// Starts one thread that works with the sessions of this worker, and only when the processor has nothing else
    /// to do.
    pub fn background(worker: Worker) -> io::Result<Self> {
        let (work, receiver) = unbounded();
        thread::Builder::new().name("compute-background".to_owned()).spawn(move || {
            yield_to_others();
            work_through(&receiver, worker);
        })?;
        Ok(Self { work, workers: 1 })
    }

    /// Number of threads.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Tasks that wait for a worker.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.work.len()
    }

    /// Has a worker run work that nobody waits for.
    pub fn spawn(&self, work: impl FnOnce(Worker) + Send + 'static) {
        // The workers receive for as long as this sender is there.
        let _ = self.work.send(Box::new(work));
    }

    /// Runs work on a worker, in the span of the call that it is for. Dropping the future before the work starts cancels
    /// it.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(Worker) -> T + Send + 'static,
    ) -> Result<Computed<T>, WorkerFailed> {
        let (sender, receiver) = oneshot::channel();
        let (submitted, call) = (Instant::now(), Span::current());
        self.spawn(move |worker| {
            let _entered = call.enter();
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

/// Gives the calling thread the lowest priority.
pub fn yield_to_others() {
    const LOWEST: i32 = 19;
    // Of the calling thread alone, on Linux.
    if let Err(error) = rustix::process::setpriority_process(None, LOWEST) {
        tracing::warn!(%error, "a background thread keeps its priority");
    }
}

fn work_through(receiver: &Receiver<Work>, worker: Worker) {
    for work in receiver {
        // The panic is logged already; the one who waits gets `WorkerFailed`.
        if catch_unwind(AssertUnwindSafe(|| work(worker))).is_err() {
            tracing::error!("a worker panicked");
        }
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
    async fn work_that_work_spawns_waits_its_turn() {
        let pool = std::sync::Arc::new(ComputePool::new(NonZeroUsize::MIN).unwrap());
        let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (sender, receiver) = oneshot::channel::<()>();
        let note = |name: &'static str| {
            let order = std::sync::Arc::clone(&order);
            move || order.lock().unwrap().push(name)
        };
        let (first, spawned, second) = (note("first"), note("spawned by the first"), note("second"));
        let own = std::sync::Arc::clone(&pool);
        pool.spawn(move |_| {
            // The second is there by then.
            let _ = receiver.blocking_recv();
            first();
            own.spawn(move |_| spawned());
        });
        pool.spawn(move |_| second());
        sender.send(()).unwrap();
        pool.run(|_| ()).await.unwrap();
        pool.run(|_| ()).await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["first", "second", "spawned by the first"]);
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_work_only() {
        let pool = pool();
        assert!(pool.run(|_| panic!("on purpose")).await.is_err());
        assert_eq!(pool.run(|_| 7).await.unwrap().value, 7);
    }
}
