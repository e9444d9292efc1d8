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

/// Counts the bytes that the calls of one client hold.
#[derive(Debug, Default)]
pub struct ClientBytes(AtomicUsize);

/// A number of bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Held {
    memory: Arc<Memory>,
    /// The client whose share the bytes count in; `None` for bytes that belong to no client.
    client: Option<Arc<ClientBytes>>,
    bytes: usize,
}

/// One client may hold at most this many times the bytes that remain free. Alone it can hold three quarters of the limit;
/// several clients together always leave some of it to others.
const MAX_CLIENT_TIMES_FREE: usize = 3;

/// The limit does not allow this many more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "calls in flight hold {held} bytes, {of_client}the maximum is {limit}, and this call needs {bytes} more; send \
     fewer configurations at a time, retry later, or raise --max-call-bytes on the server",
    of_client = of_client(*client)
)]
pub struct MemoryFull {
    /// Requested bytes.
    pub bytes: usize,
    /// Bytes that all calls hold, including the one that requests more.
    pub held: usize,
    /// Bytes that calls of this client hold, if the client would exceed its share.
    pub client: Option<usize>,
    /// Maximum number of bytes.
    pub limit: usize,
}

/// Returns the part of the message about the share of a client.
fn of_client(bytes: Option<usize>) -> String {
    bytes.map_or_else(String::new, |bytes| {
        format!(
            "{bytes} of them for this client, which may hold at most {MAX_CLIENT_TIMES_FREE} times what it leaves \
             free, "
        )
    })
}

impl Memory {
    /// Allows at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicUsize::new(0) })
    }

    /// Returns a hold of zero bytes, which grows within the share of a client.
    #[must_use]
    pub fn hold_nothing(self: &Arc<Self>, client: &Arc<ClientBytes>) -> Held {
        Held { memory: Arc::clone(self), client: Some(Arc::clone(client)), bytes: 0 }
    }

    /// Holds `bytes` bytes.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<Held, MemoryFull> {
        let mut held = Held { memory: Arc::clone(self), client: None, bytes: 0 };
        held.add(bytes)?;
        Ok(held)
    }

    /// Returns the number of bytes that are held and the maximum.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        (self.held.load(Ordering::Relaxed), self.limit)
    }

    /// Adds `bytes` bytes if that leaves enough free for a client that then holds `of_client` bytes.
    fn add(&self, bytes: usize, of_client: usize) -> Result<(), MemoryFull> {
        let sum = |held: usize| {
            let sum = held.checked_add(bytes)?;
            let free = self.limit.checked_sub(sum)?;
            (of_client <= free.saturating_mul(MAX_CLIENT_TIMES_FREE)).then_some(sum)
        };
        let added = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        added.map(drop).map_err(|held| {
            let fits = held.checked_add(bytes).is_some_and(|sum| sum <= self.limit);
            let client = fits.then(|| of_client - bytes);
            MemoryFull { bytes, held, client, limit: self.limit }
        })
    }
}

impl Held {
    /// Holds `bytes` more bytes. If they exceed the limit, the hold stays as it was.
    pub fn add(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        let of_client = self.client.as_ref().map_or(0, |client| client.add(bytes));
        self.memory.add(bytes, of_client).inspect_err(|_| self.release_of_client(bytes))?;
        self.bytes += bytes;
        Ok(())
    }

    /// Releases what is held beyond `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        self.release(self.bytes.saturating_sub(bytes));
    }

    /// Releases `bytes` bytes, or all if fewer are held.
    pub fn release(&mut self, bytes: usize) {
        let released = bytes.min(self.bytes);
        self.bytes -= released;
        self.memory.held.fetch_sub(released, Ordering::Relaxed);
        self.release_of_client(released);
    }

    fn release_of_client(&self, bytes: usize) {
        if let Some(ClientBytes(held)) = self.client.as_deref() {
            held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl ClientBytes {
    /// Adds bytes, and returns the sum. The sum of rejected bytes can exceed the range of the counter, and then wraps
    /// until they are removed again.
    fn add(&self, bytes: usize) -> usize {
        self.0.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes)
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
        let full = MemoryFull { bytes: 41, held: 60, client: None, limit: 100 };
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

    #[test]
    fn a_client_leaves_a_quarter_to_others_and_several_leave_less_but_some() {
        let memory = Memory::new(1000);
        let client = Arc::new(ClientBytes::default());
        let mut calls = [(); 2].map(|()| memory.hold_nothing(&client));
        calls[0].add(500).unwrap();
        calls[1].add(250).unwrap();
        let full = MemoryFull { bytes: 1, held: 750, client: Some(750), limit: 1000 };
        assert_eq!(calls[1].add(1), Err(full));
        let others: Vec<_> = (0..3)
            .map(|_| {
                let mut held = memory.hold_nothing(&Arc::default());
                while held.add(1).is_ok() {}
                assert!(held.bytes > 0, "there is room for another client");
                held
            })
            .collect();
        drop((calls, others));
        assert_eq!((memory.bytes(), client.0.load(Ordering::Relaxed)), ((0, 1000), 0));
    }
}
