use std::{io, time::Duration};

use crate::session::Limit;

/// The reason why a message was not received.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DeliveryError {
    /// The message is longer than the limit, as sent.
    #[error(
        "the request is too long: it has {found} bytes, the limit is {limit} bytes; send fewer configurations at a \
         time, or raise --max-message-bytes on the server"
    )]
    TooLarge {
        /// Bytes sent.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The message is longer than the limit when it is decompressed.
    #[error(
        "the request is too long: it decompresses to more than the limit of {limit} bytes; send fewer configurations \
         at a time, or raise --max-message-bytes on the server"
    )]
    DecompressedTooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The message is compressed more than messages with content are.
    #[error(
        "the request is too long: its {compressed} bytes decompress to more than {ratio} times as many; send it \
         uncompressed, or raise --max-compression-ratio on the server"
    )]
    RatioTooLarge {
        /// Bytes sent.
        compressed: usize,
        /// Ratio allowed.
        ratio: usize,
    },
    /// The first byte of a message is neither 0 nor 1.
    #[error("the request is not a readable message: its compression flag is {flag}, expected 0 or 1")]
    Flag {
        /// The byte.
        flag: u8,
    },
    /// A message is compressed, but the call does not say how.
    #[error("the request is not a readable message: it is compressed, but the call has no grpc-encoding")]
    NoEncoding,
    /// The messages end in the middle of one.
    #[error("the request is not a readable message: it ends early")]
    Truncated,
    /// The message cannot be decompressed.
    #[error("the request is not a readable message: it cannot be decompressed: {reason}")]
    Compression {
        /// The reason.
        reason: String,
    },
    /// The message has more fields than any readable message.
    #[error("the request is not a readable message: it has more than {limit} fields")]
    TooManyFields {
        /// Fields allowed.
        limit: usize,
    },
    /// The message is not JSON, or not that of its method.
    #[error("the request is not readable JSON of this method: {reason}")]
    Json {
        /// Where: names and positions, such as `batch.tile.configs[3]`.
        field: String,
        /// The reason, with line and column.
        reason: String,
    },
    /// The message did not arrive in time.
    #[error(
        "the message did not arrive within {allowed:?}; send fewer configurations at a time, or raise \
         --max-message-seconds on the server"
    )]
    Late {
        /// Time allowed.
        allowed: Duration,
    },
    /// The client sent no message for too long.
    #[error(
        "the stream has had no message for {allowed:?}; open another one, or raise --max-stream-idle-seconds on the \
         server"
    )]
    Idle {
        /// Time allowed.
        allowed: Duration,
    },
}

impl DeliveryError {
    /// The exceeded limit, if it has a number.
    pub(in crate::service) fn limit(&self) -> Option<Limit> {
        let message_bytes = |found, limit| Some(Limit::of("--max-message-bytes", found, limit));
        match *self {
            Self::TooLarge { found, limit } => message_bytes(Some(found), limit),
            Self::DecompressedTooLarge { limit } => message_bytes(None, limit),
            Self::RatioTooLarge { ratio, .. } => Some(Limit::of("--max-compression-ratio", None, ratio)),
            _ => None,
        }
    }
}

impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> Self {
        Self::Compression { reason: error.to_string() }
    }
}
