use std::{
    cell::{Cell, RefCell},
    future::poll_fn,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A piece of work. It gets the worker that runs it.
pub(super) type Work = Box<dyn FnOnce(Worker) + Send>;

/// Number of a worker, from 0. It selects the worker's own sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worker(pub usize);

/// Priority of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Small calls, whose clients wait for the answer.
    Interactive,
    /// Everything else.
    #[default]
    Bulk,
}

/// Sends the result of work to the task that waits for it. Only the first of its clones that sends does.
pub(super) struct Reply<T>(Arc<Mutex<Option<oneshot::Sender<T>>>>);

/// The task that waits for the work of a small call.
pub trait WaitingCaller: Send + Sync {
    /// Whether it was dropped before it got a result.
    fn is_gone(&self) -> bool;

    /// Tells it that no result will come.
    fn abandon(&self);
}

impl<T> Reply<T> {
    /// Returns a reply, and what receives it. Receiving fails if the reply was dropped or abandoned.
    pub(super) fn new() -> (Self, oneshot::Receiver<T>) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), receiver)
    }

    /// Whether the result is not sent yet, and the task still waits for it.
    pub(super) fn is_awaited(&self) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_some_and(|sender| !sender.is_closed())
    }

    pub(super) fn send(&self, value: T) {
        // The lock is released before the value is sent, which may drop a large value here.
        let sender = self.0.lock().take();
        // An error means that the caller no longer waits.
        let _ = sender.map(|sender| sender.send(value));
    }
}

impl<T: Send> WaitingCaller for Reply<T> {
    fn is_gone(&self) -> bool {
        self.0
            .lock()
            .as_ref()
            .is_some_and(oneshot::Sender::is_closed)
    }

    fn abandon(&self) {
        drop(self.0.lock().take());
    }
}

impl<T> Clone for Reply<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// How long a worker does what a call queues at once. Then the rest is queued, so that calls take turns.
const AT_ONCE: Duration = Duration::from_millis(2);

thread_local! {
    static SMALL_CALL: RefCell<Option<SmallCall>> = const { RefCell::new(None) };
    /// Whether the thread works for a small call that it received, without being a worker.
    static IS_RECEIVER: Cell<bool> = const { Cell::new(false) };
}

/// The call that the current thread works for.
#[derive(Clone)]
struct SmallCall {
    /// Number of the pool.
    pool: usize,
    worker: Worker,
    until: Instant,
    caller: Arc<dyn WaitingCaller>,
}

/// Sets the call of the current thread again when it is dropped.
struct SmallCallGuard(Option<SmallCall>);

impl Drop for SmallCallGuard {
    fn drop(&mut self) {
        SMALL_CALL.set(self.0.take());
    }
}

/// Runs a function for a caller. The worker does at once what the function queues in the pool.
pub(super) fn work_for<T>(
    pool: usize,
    worker: Worker,
    caller: Arc<dyn WaitingCaller>,
    work: impl FnOnce() -> T,
) -> T {
    let call = SmallCall {
        pool,
        worker,
        until: Instant::now() + AT_ONCE,
        caller,
    };
    // Set back even if the work panics: the thread continues if it cannot be replaced.
    let _before = SmallCallGuard(SMALL_CALL.replace(Some(call)));
    work()
}

/// Returns the worker that is to do at once what the current thread queues in a pool.
pub(super) fn worker_at_once(pool: usize) -> Option<Worker> {
    let call = SMALL_CALL.with_borrow(Clone::clone)?;
    (call.pool == pool && Instant::now() < call.until).then_some(call.worker)
}

/// Queues whatever the current thread does from now on for its small call, because the thread is no worker any more.
pub(super) fn end_small_call() {
    // The caller stays, so that the work still stops when the call is dropped.
    SMALL_CALL.with_borrow_mut(|call| {
        if let Some(call) = call {
            call.until = Instant::now();
        }
    });
}

/// Ends the work of a thread for a call that it received when it is dropped.
struct ReceiverGuard;

impl Drop for ReceiverGuard {
    fn drop(&mut self) {
        IS_RECEIVER.set(false);
    }
}

/// Runs a function for a call that the current thread received.
pub(super) fn work_as_receiver<T>(work: impl FnOnce() -> T) -> T {
    let _ends = ReceiverGuard;
    IS_RECEIVER.set(true);
    work()
}

/// Whether the current thread works for a call that it received.
pub(super) fn is_receiver() -> bool {
    IS_RECEIVER.get()
}

/// Waits until another thread than the one that received the call polls the call.
pub(super) async fn leave_receiver() {
    poll_fn(|context| {
        if is_receiver() {
            // Who polled as the receiver passes the whole future on. If this one is among several that are polled by their own
            // wakers, it has to say that it goes on.
            context.waker().wake_by_ref();
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Returns who waits for the work of the current thread, if that is a small call's.
pub fn caller() -> Option<Arc<dyn WaitingCaller>> {
    SMALL_CALL.with_borrow(|call| call.as_ref().map(|call| Arc::clone(&call.caller)))
}
