use std::time::Duration;

use clap::Args;
use hlorank_arguments::{bytes, bytes_within, positive_duration};
use tokio::time::Instant;

use crate::errors::DeliveryError;

/// Settings of the messages that clients send.
#[derive(Clone, Copy, Debug, Args)]
pub struct DeliverySettings {
    /// Maximum size of a message in bytes
    ///
    /// A message is a request, or one part of a stream. The limit applies before and after it is decompressed. Receiving and
    /// reading a message takes at most four times its size. A graph may take half of it, and a stream may have a
    /// configuration for every eight bytes of it, so that its ranking fits a message.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20, value_parser = bytes::<usize>)]
    pub max_message_bytes: usize,

    /// Maximum time for a message to arrive, in seconds
    ///
    /// It is measured from the headers of a call to the end of its first message, and from the first to the last byte of
    /// every later message of a stream; a call that takes longer ends.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = positive_duration)]
    pub max_message_seconds: Duration,

    /// Maximum wait for the next message, in seconds
    ///
    /// After that the stream ends.
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = positive_duration)]
    pub max_stream_idle_seconds: Duration,

    /// HTTP/2 window of a call in bytes
    ///
    /// It is what a client may send before the server reads it. The window of a connection is four times as large. An open
    /// stream holds its window in --max-call-bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = bytes_within::<u32>(65_535..=256 << 20))]
    pub stream_window_bytes: u32,
}

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
