//! Reads the body of a stream while earlier messages of it are scored.
//!
//! The transport keeps unread frames one by one, and closes a connection with many small ones, which would fail all calls of
//! the connection. They are therefore read as they arrive, and kept as plain bytes.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};

use crate::errors::DeliveryError;

/// The bytes of a call.
pub(super) enum Incoming {
    /// Read when they are asked for.
    Direct(Body),
    /// Read when they arrive.
    Ahead(ReadAhead),
}

/// Bytes that are read by a task, which ends soon after this is dropped.
pub(super) struct ReadAhead {
    shared: Arc<SharedBuffer>,
    // Nothing is ever sent: to drop the sender is the signal.
    _call: oneshot::Sender<()>,
}

#[derive(Default)]
struct SharedBuffer {
    waiting: Mutex<WaitingBytes>,
    arrived: Notify,
    taken: Notify,
}

/// Bytes that wait to be taken.
#[derive(Default)]
struct WaitingBytes {
    bytes: BytesMut,
    /// Frames that they arrived in.
    frames: usize,
    end: Option<Result<(), DeliveryError>>,
}

/// Size of frames below which they are small: each takes about this much memory in the transport.
const SMALL_FRAME_BYTES: usize = 256;

/// Time for which the rest of a call that has ended is read. It is longer than a round trip, after which the client knows.
const DISCARD: Duration = Duration::from_secs(1);

impl Incoming {
    /// Reads at most about this number of bytes ahead. Then the client is slowed by flow control if its frames are large, and
    /// the call fails if they are small.
    pub(super) fn read_ahead(body: Body, limit: usize) -> Self {
        let shared = Arc::<SharedBuffer>::default();
        let (call, left) = oneshot::channel();
        tokio::spawn(read(body, Arc::clone(&shared), limit, left));
        Self::Ahead(ReadAhead {
            shared,
            _call: call,
        })
    }

    /// Returns the next bytes; `None` at the end.
    pub(super) async fn bytes(&mut self) -> Result<Option<Bytes>, DeliveryError> {
        match self {
            Self::Direct(body) => next(body).await,
            Self::Ahead(ahead) => ahead.shared.next().await,
        }
    }
}

/// Returns the next bytes of a body. gRPC clients send no trailers.
async fn next(body: &mut Body) -> Result<Option<Bytes>, DeliveryError> {
    let frame = body.frame().await.transpose()?;
    Ok(frame.and_then(|frame| frame.into_data().ok()))
}

async fn read(
    mut body: Body,
    shared: Arc<SharedBuffer>,
    limit: usize,
    mut left: oneshot::Receiver<()>,
) {
    let is_over = tokio::select! {
        is_over = keep(&mut body, &shared, limit) => is_over,
        // The call has ended before its client has.
        _ = &mut left => false,
    };
    if !is_over {
        let _ = timeout(DISCARD, discard(&mut body, 2 * limit)).await;
    }
}

/// Reads until the end of the call, and returns whether that is the end of the body, too.
async fn keep(body: &mut Body, shared: &SharedBuffer, limit: usize) -> bool {
    loop {
        let end = match next(body).await {
            Ok(Some(bytes)) => match shared.add(&bytes, limit) {
                Ok(()) => None,
                Err(ahead) => {
                    shared.end(Err(ahead));
                    return false;
                }
            },
            Ok(None) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        if let Some(end) = end {
            shared.end(end);
            return true;
        }
        shared.until_below(limit).await;
    }
}

/// Reads what was on its way when the call ended. The transport counts frames that nobody reads against the connection.
async fn discard(body: &mut Body, limit: usize) {
    let mut discarded = 0;
    while discarded < limit
        && let Ok(Some(bytes)) = next(body).await
    {
        discarded += bytes.len();
    }
}

impl SharedBuffer {
    fn lock(&self) -> MutexGuard<'_, WaitingBytes> {
        self.waiting.lock()
    }

    /// Adds bytes, unless too many small frames wait.
    fn add(&self, bytes: &[u8], limit: usize) -> Result<(), DeliveryError> {
        let mut waiting = self.lock();
        waiting.bytes.extend_from_slice(bytes);
        waiting.frames += 1;
        // Flow control stops a client whose frames are large. Small ones take the transport more
        // memory than their bytes, so their sender is refused instead.
        let are_small = waiting.bytes.len() < SMALL_FRAME_BYTES * waiting.frames;
        if waiting.bytes.len() >= limit && are_small {
            return Err(DeliveryError::Ahead { limit });
        }
        drop(waiting);
        self.arrived.notify_one();
        Ok(())
    }

    fn end(&self, end: Result<(), DeliveryError>) {
        self.lock().end = Some(end);
        self.arrived.notify_one();
    }

    async fn until_below(&self, limit: usize) {
        while self.lock().bytes.len() >= limit {
            self.taken.notified().await;
        }
    }

    async fn next(&self) -> Result<Option<Bytes>, DeliveryError> {
        loop {
            if let Some(next) = self.take() {
                return next;
            }
            // `Notify` keeps one permit, so that bytes which arrive just now end the wait, too.
            self.arrived.notified().await;
        }
    }

    /// Takes what waits; `None` if nothing does.
    fn take(&self) -> Option<Result<Option<Bytes>, DeliveryError>> {
        let mut waiting = self.lock();
        // The call fails in any case, so what arrived before the error is not scored first.
        if let Some(Err(error)) = &waiting.end {
            return Some(Err(error.clone()));
        }
        if !waiting.bytes.is_empty() {
            waiting.frames = 0;
            self.taken.notify_one();
            return Some(Ok(Some(std::mem::take(&mut waiting.bytes).freeze())));
        }
        waiting.end.as_ref().map(|_| Ok(None))
    }
}
