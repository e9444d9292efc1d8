//! Small calls, whose work a worker does at once instead of queueing it piece by piece.

use std::{
    cell::RefCell,
    sync::Arc,
    time::{Duration, Instant},
};

use super::work::{Caller, Worker};

/// How long a worker does what a call queues at once. Then the rest is queued, so that calls take turns.
const AT_ONCE: Duration = Duration::from_millis(2);

thread_local! {
    static SMALL_CALL: RefCell<Option<SmallCall>> = const { RefCell::new(None) };
}

/// The call that the current thread works for.
#[derive(Clone)]
struct SmallCall {
    /// Number of the pool.
    pool: usize,
    worker: Worker,
    until: Instant,
    caller: Arc<dyn Caller>,
}

/// Sets the call of the current thread again when it is dropped.
struct Before(Option<SmallCall>);

impl Drop for Before {
    fn drop(&mut self) {
        SMALL_CALL.set(self.0.take());
    }
}

/// Runs a function for a caller. The worker does at once what the function queues in the pool.
pub(super) fn work_for<T>(
    pool: usize,
    worker: Worker,
    caller: Arc<dyn Caller>,
    work: impl FnOnce() -> T,
) -> T {
    let call = SmallCall {
        pool,
        worker,
        until: Instant::now() + AT_ONCE,
        caller,
    };
    // Set back even if the work panics: the thread continues if it cannot be replaced.
    let _before = Before(SMALL_CALL.replace(Some(call)));
    work()
}

/// Returns the worker that is to do at once what the current thread queues in a pool.
pub(super) fn worker(pool: usize) -> Option<Worker> {
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

/// Returns who waits for the work of the current thread, if that is a small call's.
#[must_use]
pub fn caller() -> Option<Arc<dyn Caller>> {
    SMALL_CALL.with_borrow(|call| call.as_ref().map(|call| Arc::clone(&call.caller)))
}
