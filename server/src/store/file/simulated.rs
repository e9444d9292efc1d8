//! Pauses before and after each use of the file, at which a simulation goes on with another call. They come whether the file has been
//! read by then or not, so that a simulation is the same again.

use std::{cell::Cell, future::poll_fn, task::Poll};

thread_local! {
    /// Whether the call that is polled has paused; `None` outside of a simulation.
    static HAS_PAUSED: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Polls something, and returns also whether it is at a pause.
pub(crate) fn polled<T>(poll: impl FnOnce() -> Poll<T>) -> (Poll<T>, bool) {
    HAS_PAUSED.set(Some(false));
    let polled = poll();
    (polled, HAS_PAUSED.take() == Some(true))
}

/// Pauses, if this is a simulation.
pub(super) async fn pause() {
    let mut is_over = HAS_PAUSED.get().is_none();
    let pause = poll_fn(|_| {
        if is_over {
            return Poll::Ready(());
        }
        is_over = true;
        HAS_PAUSED.set(Some(true));
        Poll::Pending
    });
    pause.await;
}
