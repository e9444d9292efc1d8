use std::sync::Arc;

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
pub trait Caller: Send + Sync {
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

impl<T: Send> Caller for Reply<T> {
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
