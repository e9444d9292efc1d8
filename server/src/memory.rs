//! The memory that calls in flight hold, counted before it is allocated.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Counts the bytes that all calls hold together, up to a limit.
#[derive(Debug)]
pub struct Memory {
    limit: usize,
    held: AtomicUsize,
}

/// A number of bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Held {
    memory: Arc<Memory>,
    bytes: usize,
}

/// The limit does not allow this many more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "calls in flight hold {held} bytes, the maximum is {limit}, and this call needs {bytes} more; send fewer \
     configurations at a time, retry later, or raise --max-call-bytes on the server"
)]
pub struct MemoryFull {
    /// Requested bytes.
    pub bytes: usize,
    /// Bytes that all calls hold, including the one that requests more.
    pub held: usize,
    /// Maximum number of bytes.
    pub limit: usize,
}

impl Memory {
    /// Allows at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicUsize::new(0) })
    }

    /// Returns a hold of zero bytes.
    #[must_use]
    pub fn hold_nothing(self: &Arc<Self>) -> Held {
        Held { memory: Arc::clone(self), bytes: 0 }
    }

    /// Holds `bytes` bytes.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, MemoryFull> {
        let mut held = self.hold_nothing();
        held.add(bytes)?;
        Ok(held)
    }

    /// Returns the number of bytes that are held and the maximum.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        (self.held.load(Ordering::Relaxed), self.limit)
    }
}

impl Held {
    /// Holds `bytes` more bytes. If they exceed the limit, the hold stays as it was.
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

    /// Releases what is held beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let released = self.bytes.saturating_sub(bytes);
        self.bytes -= released;
        self.memory.held.fetch_sub(released, Ordering::Relaxed);
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
    fn the_limit_is_never_exceeded() {
        let memory = Memory::new(100);
        let mut one = memory.hold(60).unwrap();
        let full = MemoryFull { bytes: 41, held: 60, limit: 100 };
        assert_eq!(memory.hold(41).unwrap_err(), full);
        assert_eq!(one.add(usize::MAX), Err(MemoryFull { bytes: usize::MAX, ..full }));
        assert_eq!(memory.bytes(), (60, 100), "rejected bytes are not held");
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
