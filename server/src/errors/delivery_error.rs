use std::{error::Error, io, iter::successors, time::Duration};

use serde_path_to_error::Track;

use crate::call::Limit;

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
         uncompressed"
    )]
    RatioTooLarge {
        /// Bytes sent.
        compressed: usize,
        /// Ratio allowed.
        ratio: usize,
    },
    /// The first byte of a message is neither 0 nor 1.
    #[error(
        "the request is not a readable message: its compression flag is {flag}, expected 0 or 1"
    )]
    Flag {
        /// The byte.
        flag: u8,
    },
    /// A message is compressed, but the call does not say how.
    #[error(
        "the request is not a readable message: it is compressed, but the call has no grpc-encoding"
    )]
    NoEncoding,
    /// The messages are compressed in a way that the server does not have.
    #[error("the messages are compressed with {found:?} ({header}), expected gzip or identity")]
    Encoding {
        /// The header that says so.
        header: &'static str,
        /// Its value.
        found: String,
    },
    /// The client closed the connection or reset the call before its message was complete.
    #[error("the request broke off in the middle of a message: {reason}")]
    Broken {
        /// The words of the transport.
        reason: String,
    },
    /// The body does not have the form that HTTP requires, such as chunks with a length.
    #[error("the request is not a readable message: its body is not valid HTTP: {reason}")]
    Http {
        /// The words of the transport.
        reason: String,
    },
    /// The client sends small batches much faster than the server scores them.
    #[error(
        "the stream is too far ahead: {limit} bytes of small batches wait to be scored; put more configurations into a batch, \
         read the scores of a batch before sending many more, or raise --stream-window-bytes on the server"
    )]
    Ahead {
        /// Bytes that may wait.
        limit: usize,
    },
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
    /// The error of a message in JSON, with the place that its reader had come to.
    pub(crate) fn of_json(track: Track, error: &serde_json::Error) -> Self {
        Self::Json {
            field: track.path().to_string(),
            reason: error.to_string(),
        }
    }

    /// The exceeded limit, if it has a number.
    pub(super) fn limit(&self) -> Option<Limit> {
        let message_bytes = |found, limit| Some(Limit::of("--max-message-bytes", found, limit));
        match *self {
            Self::TooLarge { found, limit } => message_bytes(Some(found), limit),
            Self::DecompressedTooLarge { limit } => message_bytes(None, limit),
            Self::Ahead { limit } => Some(Limit::of("--stream-window-bytes", None, limit)),
            Self::RatioTooLarge { ratio, .. } => Some(Limit::fixed(None, ratio)),
            _ => None,
        }
    }
}

/// What the body of a request could not be read for. None of it is a fault of the server: the client left, or sent what is
/// not HTTP.
impl From<axum::Error> for DeliveryError {
    fn from(error: axum::Error) -> Self {
        let causes = || successors(Some(&error as &dyn Error), |cause| (*cause).source());
        let mut failures = causes().filter_map(|cause| cause.downcast_ref::<io::Error>());
        // The transport reports a client that left as another kind, such as a reset.
        let is_invalid =
            |kind| kind == io::ErrorKind::InvalidInput || kind == io::ErrorKind::InvalidData;
        // The errors above the first cause repeat its words or replace them by general ones.
        let reason = causes().last().map(ToString::to_string);
        let reason = reason.unwrap_or_default();
        if failures.any(|failure| is_invalid(failure.kind())) {
            Self::Http { reason }
        } else {
            Self::Broken { reason }
        }
    }
}

impl From<io::Error> for DeliveryError {
    fn from(error: io::Error) -> Self {
        Self::Compression {
            reason: error.to_string(),
        }
    }
}
