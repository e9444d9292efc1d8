use std::{
    future::Future,
    io,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crossbeam_channel::{Sender, unbounded};
use parking_lot::Mutex;
use tracing::Span;

use super::{
    queue::WorkQueue,
    threads::Threads,
    turns::{Queues, Turns},
    watch::{Run, RunWatch, WatchedRun},
    work::{self, Class, Reply, WaitingCaller as _, Work, Worker},
};
use crate::runtime::Interrupt;

/// A fixed number of worker threads. They run interactive work before bulk work, and the work of each class in the order
/// of submission, so that calls take turns. A thread whose work panics or hangs is replaced. The threads end when the pool
/// has been dropped and its work is done.
pub struct ComputePool {
    interactive: Sender<Work>,
    bulk: Sender<Work>,
    workers: usize,
    threads: Arc<Threads>,
    /// Held while a thread is the receiver of a call.
    receiving: Mutex<()>,
}

/// The work panicked.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a worker failed while computing")]
pub struct WorkerFailed;

/// The result of work.
pub struct WorkResult<T> {
    /// The value that the work returned.
    pub value: T,
    /// Time from submission to start.
    pub waited: Duration,
}

impl ComputePool {
    /// Starts the threads.
    pub fn new(workers: NonZeroUsize) -> io::Result<Self> {
        let pool = Self::without_threads(workers.get(), RunWatch::start()?, false);
        for worker in 0..workers.get() {
            pool.threads
                .start(Worker(worker), format!("compute-{worker}"))?;
        }
        Ok(pool)
    }

    /// Starts a pool of one thread that uses the sessions of this worker.
    pub fn background(&self, worker: Worker) -> io::Result<Self> {
        let pool = Self::without_threads(1, Arc::clone(&self.threads.watch), true);
        pool.threads
            .start(worker, "compute-background".to_owned())?;
        Ok(pool)
    }

    fn without_threads(workers: usize, watch: Arc<RunWatch>, is_background: bool) -> Self {
        // Without bounds: the callers of the pool limit what they queue, and a worker that had to
        // wait for room in its own queue could wait forever.
        let (interactive, interactive_work) = unbounded();
        let (bulk, bulk_work) = unbounded();
        let queue = WorkQueue::new(interactive_work, bulk_work);
        Self {
            interactive,
            bulk,
            workers,
            threads: Threads::new(queue, watch, is_background),
            receiving: Mutex::new(()),
        }
    }

    /// Sets the maximum duration of a run of a session, of this pool and of the background pools that share its watch.
    #[must_use]
    pub fn with_max_run(self, max: Duration) -> Self {
        self.threads.watch.set_max_run(max);
        self
    }

    /// Number of threads.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Number of times that work has panicked.
    pub fn panics(&self) -> u64 {
        self.threads.panics()
    }

    /// Number of pieces of work that wait for a worker.
    pub fn queued(&self) -> usize {
        self.interactive.len() + self.bulk.len()
    }

    /// Whether interactive work waits for a worker.
    pub fn has_interactive(&self) -> bool {
        !self.interactive.is_empty()
    }

    /// Records that an interactive call is in flight now.
    pub fn note_interactive(&self) {
        self.threads.note_interactive();
    }

    /// Returns whether there was an interactive call recently, so that bulk work should come in smaller pieces.
    pub fn is_interactive(&self) -> bool {
        self.threads.is_interactive()
    }

    /// Queues work without waiting for its result.
    pub fn queue(&self, class: Class, work: impl FnOnce(Worker) + Send + 'static) {
        // Sending cannot fail: the workers receive as long as this sender exists.
        let _ = self.sender(class).send(Box::new(work));
    }

    fn sender(&self, class: Class) -> &Sender<Work> {
        match class {
            Class::Interactive => &self.interactive,
            Class::Bulk => &self.bulk,
        }
    }

    /// Queues work, or does it at once if [`Self::at_once`] returns a worker. The caller must not hold locks that the work
    /// takes.
    pub fn spawn(&self, class: Class, work: impl FnOnce(Worker) + Send + 'static) {
        match self.at_once(class) {
            Some(worker) => work(worker),
            None => self.queue(class, work),
        }
    }

    /// Returns the worker that the current thread is, if it does work of this class at once for a small call that
    /// [`Self::drive`] began less than some milliseconds ago.
    pub fn at_once(&self, class: Class) -> Option<Worker> {
        if class == Class::Interactive {
            work::worker_at_once(self.number())
        } else {
            None
        }
    }

    /// Polls the future of a very small call on the calling thread, the receiver. If the call comes to [`Self::need_worker`], or
    /// another thread is the receiver, a worker drives the rest of it. Other calls of the calling thread wait meanwhile.
    pub async fn drive_here<F>(&self, future: F) -> Result<WorkResult<F::Output>, WorkerFailed>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let Some(receiving) = self.receiving.try_lock() else {
            return self.drive(future).await;
        };
        let mut future = Box::pin(future);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut context = Context::from_waker(Waker::noop());
            work::work_as_receiver(|| future.as_mut().poll(&mut context))
        }));
        drop(receiving);
        match polled {
            Ok(Poll::Ready(value)) => Ok(WorkResult {
                value,
                waited: Duration::ZERO,
            }),
            // The wait for a worker counts towards the stage that needs one.
            Ok(Poll::Pending) => Ok(WorkResult {
                waited: Duration::ZERO,
                ..self.drive(future).await?
            }),
            // The panic is printed already.
            Err(_) => {
                self.threads.count_panic();
                Err(WorkerFailed)
            }
        }
    }

    /// Returns what selects the receiver's own sessions, if the current thread is the receiver of a call. Only heads have them.
    pub fn receiver(&self) -> Option<Worker> {
        work::is_receiver().then_some(Worker(self.workers))
    }

    /// Waits until a worker or the calling task polls the call, if [`Self::drive_here`] does.
    pub async fn need_worker(&self) {
        work::leave_receiver().await;
    }

    /// Runs the work of a small call that takes little time: immediately, if [`Self::drive_here`] polls the call, and otherwise
    /// as [`Self::run`] does.
    pub async fn run_short<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<WorkResult<T>, WorkerFailed> {
        if work::is_receiver() {
            return Ok(WorkResult {
                value: work(),
                waited: Duration::ZERO,
            });
        }
        self.run(class, move |_| work()).await
    }

    /// Polls the future of a small call on a worker, which does the interactive work of the future at once for some
    /// milliseconds, so that the call is handed from thread to thread only twice. If the future has to wait, the calling task
    /// polls it from then on, and what it queues is queued behind the work of other calls. Dropping the returned future
    /// before the work starts cancels the work.
    pub async fn drive<F>(&self, future: F) -> Result<WorkResult<F::Output>, WorkerFailed>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let submitted = Instant::now();
        let pool = self.number();
        let sent = self.answer(Class::Interactive, move |worker, reply: Reply<_>| {
            let waited = submitted.elapsed();
            let mut future = Box::pin(future);
            // Nothing has to be woken: the worker polls once, and the calling task polls again as
            // soon as it gets the future back, with a waker of its own.
            let mut context = Context::from_waker(Waker::noop());
            let advance = || future.as_mut().poll(&mut context);
            match work::work_for(pool, worker, Arc::new(reply.clone()), advance) {
                Poll::Ready(value) => reply.send(Ok(WorkResult { value, waited })),
                Poll::Pending => reply.send(Err((future, waited))),
            }
        });
        match sent.await? {
            Ok(computed) => Ok(computed),
            Err((future, waited)) => Ok(WorkResult {
                value: future.await,
                waited,
            }),
        }
    }

    /// Runs work on a worker, in the span of the calling task. Work that takes long and calls
    /// [`pause`](hlorank_graph::pace::pause) takes turns with other work, and ends soon after the future was dropped. Work
    /// that has not started by then is not started. The worker is for work that never pauses.
    pub async fn run<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce(Worker) -> T + Send + 'static,
    ) -> Result<WorkResult<T>, WorkerFailed> {
        let submitted = Instant::now();
        let threads = Arc::clone(&self.threads);
        let queues = Queues {
            first: self.sender(class).clone(),
            later: self.bulk.clone(),
        };
        let answer = self.answer(class, move |worker, reply| {
            let waited = submitted.elapsed();
            let turns = Turns::new(threads, queues, worker, is_needed(&reply));
            if let Some(value) = turns.run(|| work(worker)) {
                reply.send(WorkResult { value, waited });
            }
        });
        answer.await
    }

    /// Runs a session on a worker, as [`Self::run`] does. If the run hangs, its thread is left behind and this fails.
    /// The caller stops the interrupt when it no longer needs the run.
    pub async fn run_session<T: Send + 'static>(
        &self,
        class: Class,
        interrupt: Arc<Interrupt>,
        run: impl FnOnce(Worker, &Interrupt) -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        self.need_worker().await;
        self.run_watched(class, interrupt, None, run).await
    }

    /// Runs work on a worker for at most `max`. If it takes longer, its thread is left behind and this fails.
    pub async fn run_within<T: Send + 'static>(
        &self,
        max: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        let interrupt = Interrupt::new(Arc::new(|| ())).map_err(|_| WorkerFailed)?;
        self.run_watched(Class::Bulk, Arc::new(interrupt), Some(max), |_, _| work())
            .await
    }

    async fn run_watched<T: Send + 'static>(
        &self,
        class: Class,
        interrupt: Arc<Interrupt>,
        max: Option<Duration>,
        run: impl FnOnce(Worker, &Interrupt) -> T + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        let threads = Arc::clone(&self.threads);
        let answer = self.answer(class, move |worker, reply: Reply<T>| {
            let waiting = reply.clone();
            let run_of_caller = Run {
                interrupt: Arc::clone(&interrupt),
                is_needed: Box::new(is_needed(&reply)),
                abandon: Box::new(move || waiting.abandon()),
                max,
            };
            let watched = threads.watch_run(worker, run_of_caller);
            let value = run(worker, &interrupt);
            // Before the result is sent: after that nobody needs the run, so the watch would stop
            // the interrupt, which other runs of the call may share.
            drop(watched);
            reply.send(value);
        });
        answer.await
    }

    /// Queues work in the span of the calling task, and waits for what the work sends. Work that
    /// nobody waits for any more is not started.
    async fn answer<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce(Worker, Reply<T>) + Send + 'static,
    ) -> Result<T, WorkerFailed> {
        let (reply, receiver) = Reply::new();
        let call = Span::current();
        self.spawn(class, move |worker| {
            if reply.is_awaited() {
                let _entered = call.enter();
                work(worker, reply);
            }
        });
        // If the work panics, its reply is dropped while the stack unwinds.
        receiver.await.map_err(|_| WorkerFailed)
    }

    /// Watches a run of the calling worker, until the returned value is dropped. The run is stopped if it is not needed
    /// any more. If it hangs, the worker's thread is replaced, and then `abandon` is called.
    pub fn watch_run(
        &self,
        worker: Worker,
        interrupt: Arc<Interrupt>,
        is_needed: impl Fn() -> bool + Send + 'static,
        abandon: impl FnOnce() + Send + 'static,
    ) -> WatchedRun {
        let run = Run {
            interrupt,
            is_needed: Box::new(is_needed),
            abandon: Box::new(abandon),
            max: None,
        };
        self.threads.watch_run(worker, run)
    }

    /// Tells it from other pools.
    fn number(&self) -> usize {
        Arc::as_ptr(&self.threads).addr()
    }
}

/// Returns a function that returns whether a task waits for a result of the calling thread's work.
fn is_needed<T: Send + 'static>(reply: &Reply<T>) -> impl Fn() -> bool + Send + use<T> {
    let reply = reply.clone();
    // A small call that is dropped cannot drop its receivers while this thread polls its future, so
    // the task that waits for the call has to wait as well.
    let caller = work::caller();
    move || reply.is_awaited() && !caller.as_ref().is_some_and(|caller| caller.is_gone())
}

#[cfg(test)]
mod tests;
