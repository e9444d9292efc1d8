//! Bytes that calls in progress hold, counted before they are taken.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// What all calls may hold together.
#[derive(Debug)]
pub struct Memory {
    limit: usize,
    held: AtomicUsize,
}

/// What something holds, until it is dropped.
#[derive(Debug)]
pub struct Held {
    memory: Arc<Memory>,
    bytes: usize,
}

/// There is no room for so much more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "calls in progress hold {held} bytes already, of at most {limit}, and this one needs {bytes} more; send fewer \
     configurations at a time, try again later, or raise --max-call-bytes on the server"
)]
pub struct MemoryFull {
    /// Bytes that there is no room for.
    pub bytes: usize,
    /// Bytes that calls hold, this one included.
    pub held: usize,
    /// Bytes that they may hold.
    pub limit: usize,
}

impl Memory {
    /// Of at most so many bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicUsize::new(0) })
    }

    /// Holds nothing yet.
    #[must_use]
    pub fn hold_nothing(self: &Arc<Self>) -> Held {
        Held { memory: Arc::clone(self), bytes: 0 }
    }

    /// Holds so many bytes.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, MemoryFull> {
        let mut held = self.hold_nothing();
        held.add(bytes)?;
        Ok(held)
    }

    /// Bytes that are held, and that may be.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        (self.held.load(Ordering::Relaxed), self.limit)
    }
}

impl Held {
    /// Holds so many bytes more, or as many as before.
    pub fn add(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        let Memory { limit, held } = &*self.memory;
        let sum = |held: usize| held.checked_add(bytes).filter(|sum| sum <= limit);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum).map_err(|held| MemoryFull {
            bytes,
            held,
            limit: *limit,
        })?;
        self.bytes += bytes;
        Ok(())
    }

    /// Holds so many bytes and no more, if it held more.
    pub fn shrink_to(&mut self, bytes: usize) {
        let given_back = self.bytes.saturating_sub(bytes);
        self.bytes -= given_back;
        self.memory.held.fetch_sub(given_back, Ordering::Relaxed);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_may_be() {
        let memory = Memory::new(100);
        let mut one = memory.hold(60).unwrap();
        let full = MemoryFull { bytes: 41, held: 60, limit: 100 };
        assert_eq!(memory.hold(41).unwrap_err(), full);
        assert_eq!(one.add(usize::MAX), Err(MemoryFull { bytes: usize::MAX, ..full }));
        assert_eq!(memory.bytes(), (60, 100), "what was refused is not held");
        let other = memory.hold(40).unwrap();
        drop(other);
        one.add(40).unwrap();
        one.shrink_to(10);
        one.shrink_to(20);
        assert_eq!(memory.bytes(), (10, 100));
        drop(one);
        assert_eq!(memory.bytes(), (0, 100));
    }
}
