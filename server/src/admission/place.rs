use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use super::in_flight::AdmittedRequest;
use crate::memory::{Held, MemoryFull};

/// The memory that a call holds and, once its first message has arrived, its place among the requests in flight. Clones
/// share both.
#[derive(Clone)]
pub(crate) struct Place {
    held: Arc<Mutex<Held>>,
    /// Bytes that are held for as long as the call.
    _window: Arc<Held>,
    admitted: Arc<OnceLock<AdmittedRequest>>,
}

impl Place {
    pub(super) fn new(held: Held, window: Held) -> Self {
        Self {
            held: Arc::new(Mutex::new(held)),
            _window: Arc::new(window),
            admitted: Arc::default(),
        }
    }

    /// Counts the call as in flight. Only the first call of this function has an effect.
    pub(crate) fn admit(&self, admitted: AdmittedRequest) {
        // A second request is dropped here, and so stops counting at once.
        let _ = self.admitted.set(admitted);
    }

    /// Holds `bytes` more bytes.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), MemoryFull> {
        self.held().add(bytes)
    }

    /// Releases `bytes` bytes, or all if fewer are held.
    pub(crate) fn release(&self, bytes: usize) {
        self.held().release(bytes);
    }

    /// Releases what the call holds beyond `bytes`.
    pub(crate) fn hold_only(&self, bytes: usize) {
        self.held().shrink_to(bytes);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock()
    }
}
