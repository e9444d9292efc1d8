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
pub struct HeldBytes {
    memory: Arc<Memory>,
    /// The client whose share the bytes count in; `None` for bytes that belong to no client.
    client: Option<Arc<ClientBytes>>,
    bytes: usize,
}

/// One client may hold at most this many times the bytes that remain free beside the reserve. Alone it can hold three
/// quarters of them; several clients together always leave some to others.
const MAX_CLIENT_TIMES_FREE: usize = 3;

/// This fraction of the limit is kept for small calls, whatever the others hold.
const RESERVE: usize = 8;

/// A small call holds at most this many bytes, which is less than the window of a stream, and at most this fraction of the
/// limit.
const SMALL_BYTES: usize = 512 << 10;
const SMALL_FRACTION: usize = 64;

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
        Arc::new(Self {
            limit,
            held: AtomicUsize::new(0),
        })
    }

    /// Returns a hold of zero bytes, which grows within the share of a client.
    #[must_use]
    pub fn hold_nothing(self: &Arc<Self>, client: &Arc<ClientBytes>) -> HeldBytes {
        HeldBytes {
            memory: Arc::clone(self),
            client: Some(Arc::clone(client)),
            bytes: 0,
        }
    }

    /// Holds `bytes` bytes.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> Result<HeldBytes, MemoryFull> {
        let mut held = HeldBytes {
            memory: Arc::clone(self),
            client: None,
            bytes: 0,
        };
        held.add(bytes)?;
        Ok(held)
    }

    /// Returns the number of bytes that are held and the maximum.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        (self.held.load(Ordering::Relaxed), self.limit)
    }

    /// Returns the number of bytes that a call may hold if no other call holds any: all but the reserve.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.limit - self.limit / RESERVE
    }

    /// Adds `bytes` bytes to a call that then holds `of_call` bytes and whose client holds `of_client`. Unless the call is
    /// small, the reserve has to remain, and the share of the client counts.
    fn add(&self, bytes: usize, of_call: usize, of_client: usize) -> Result<(), MemoryFull> {
        let is_small = of_call <= SMALL_BYTES.min(self.limit / SMALL_FRACTION);
        let allowed = if is_small { self.limit } else { self.largest() };
        let sum = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= allowed);
        // The share shrinks while others hold more, so no client can fill what it found free.
        let within_share = |sum: usize| {
            is_small || of_client <= (allowed - sum).saturating_mul(MAX_CLIENT_TIMES_FREE)
        };
        let added = self
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                sum(held).filter(|&sum| within_share(sum))
            });
        added.map(drop).map_err(|held| MemoryFull {
            bytes,
            held,
            // If the sum is allowed, it was the share of the client that was exceeded.
            client: sum(held).map(|_| of_client - bytes),
            limit: self.limit,
        })
    }
}

impl HeldBytes {
    /// Holds `bytes` more bytes. If they exceed the limit, the hold stays as it was.
    pub fn add(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        // The bytes count for the client before the decision, so that two of its calls at a time
        // cannot both take what is left of its share.
        let of_client = self.client.as_ref().map_or(0, |client| client.add(bytes));
        let of_call = self.bytes.saturating_add(bytes);
        self.memory
            .add(bytes, of_call, of_client)
            .inspect_err(|_| self.release_of_client(bytes))?;
        self.bytes += bytes;
        Ok(())
    }

    /// Holds `bytes` bytes of the same client by themselves.
    pub fn hold_beside(&self, bytes: usize) -> Result<Self, MemoryFull> {
        let mut held = Self {
            memory: Arc::clone(&self.memory),
            client: self.client.clone(),
            bytes: 0,
        };
        held.add(bytes)?;
        Ok(held)
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
        self.0
            .fetch_add(bytes, Ordering::Relaxed)
            .saturating_add(bytes)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_exceeded() {
        let memory = Memory::new(800);
        let mut one = memory.hold(600).unwrap();
        let full = MemoryFull {
            bytes: 101,
            held: 600,
            client: None,
            limit: 800,
        };
        assert_eq!(memory.hold(101).unwrap_err(), full);
        assert_eq!(
            one.add(usize::MAX),
            Err(MemoryFull {
                bytes: usize::MAX,
                ..full
            })
        );
        assert_eq!(memory.bytes(), (600, 800), "rejected bytes are not held");
        let other = memory.hold(100).unwrap();
        drop(other);
        one.add(100).unwrap();
        one.shrink_to(100);
        one.shrink_to(200);
        assert_eq!(memory.bytes(), (100, 800));
        drop(one);
        assert_eq!(memory.bytes(), (0, 800));
    }

    #[test]
    fn small_calls_have_a_reserve() {
        let memory = Memory::new(800);
        let client = Arc::default();
        let _large = memory.hold(700).unwrap();
        assert_eq!(memory.hold(13).unwrap_err().held, 700);
        let mut small: Vec<_> = (0..8).map(|_| memory.hold_nothing(&client)).collect();
        for call in &mut small {
            call.add(12).unwrap();
        }
        assert!(small[0].add(1).is_err(), "the call is no longer small");
        assert_eq!(memory.hold(5).unwrap_err().held, 796);
    }

    #[test]
    fn a_client_leaves_a_quarter_to_others_and_several_leave_less_but_some() {
        let memory = Memory::new(1000);
        let client = Arc::new(ClientBytes::default());
        let mut calls = [(); 2].map(|()| memory.hold_nothing(&client));
        calls[0].add(400).unwrap();
        calls[1].add(256).unwrap();
        let full = MemoryFull {
            bytes: 1,
            held: 656,
            client: Some(656),
            limit: 1000,
        };
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
        assert_eq!(
            (memory.bytes(), client.0.load(Ordering::Relaxed)),
            ((0, 1000), 0)
        );
    }
}
