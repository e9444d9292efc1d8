use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Deadline, admission::Admitted};
use crate::{
    memory::{Held, MemoryFull},
    telemetry::CallRecord,
};

/// The place of an admitted call among the requests in flight, and the memory that it holds. Clones share both.
#[derive(Clone)]
pub(crate) struct Place {
    held: Arc<Mutex<Held>>,
    _admitted: Arc<Admitted>,
}

/// What a session needs to know about its call.
pub(crate) struct Call {
    pub(crate) place: Place,
    pub(crate) record: CallRecord,
    pub(crate) deadline: Option<Deadline>,
}

impl Place {
    pub(super) fn new(admitted: Admitted, held: Held) -> Self {
        Self { held: Arc::new(Mutex::new(held)), _admitted: Arc::new(admitted) }
    }

    /// Holds `bytes` more bytes.
    pub(crate) fn hold(&self, bytes: usize) -> Result<(), MemoryFull> {
        self.held().add(bytes)
    }

    /// Releases what the call holds beyond `bytes`.
    pub(crate) fn hold_only(&self, bytes: usize) {
        self.held().shrink_to(bytes);
    }

    /// Ignores poisoning, because nothing panics while it holds the lock.
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
