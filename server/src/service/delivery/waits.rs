use tokio::time::Instant;

use super::DeliverySettings;
use crate::service::delivery_error::DeliveryError;

/// What the server waits for.
#[derive(Clone, Copy)]
pub(super) enum Waits {
    /// The rest of a message. The first message begins with the headers.
    Message { since: Instant },
    /// The next message of a stream.
    Next { since: Instant },
}

impl Waits {
    /// A message begins.
    pub(super) fn message() -> Self {
        let since = Instant::now();
        Self::Message { since }
    }

    /// A message of a stream is complete.
    pub(super) fn next() -> Self {
        let since = Instant::now();
        Self::Next { since }
    }

    /// Returns until when the server waits, and the error of a call that takes longer.
    pub(super) fn end(self, settings: &DeliverySettings) -> (Instant, DeliveryError) {
        match self {
            Self::Message { since } => {
                let allowed = settings.max_message_seconds;
                (since + allowed, DeliveryError::Late { allowed })
            }
            Self::Next { since } => {
                let allowed = settings.max_stream_idle_seconds;
                (since + allowed, DeliveryError::Idle { allowed })
            }
        }
    }
}
