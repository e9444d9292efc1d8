use std::{error::Error, io, iter::successors, time::Duration};

use serde_path_to_error::Track;

use crate::refusal::refusals;

refusals! {
    /// The reason why a message was not received.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum DeliveryError {
        #[error(
            "the request is too long: it has {found} bytes, the limit is {limit} bytes; send fewer configurations at a time, \
             or raise --max-message-bytes on the server"
        )]
        TooLarge { found: usize, limit: usize } => MESSAGE_TOO_LARGE.limit("--max-message-bytes").found(found).allowed(limit),
        #[error(
            "the request is too long: it decompresses to more than the limit of {limit} bytes; send fewer configurations at \
             a time, or raise --max-message-bytes on the server"
        )]
        DecompressedTooLarge { limit: usize } => MESSAGE_TOO_LARGE.limit("--max-message-bytes").allowed(limit),
        #[error(
            "the request is too long: its {compressed} bytes decompress to more than {ratio} times as many; send it \
             uncompressed"
        )]
        RatioTooLarge { compressed: usize, ratio: usize } => MESSAGE_TOO_LARGE.allowed(ratio),
        #[error("the request is not a readable message: its compression flag is {flag}, expected 0 or 1")]
        Flag { flag: u8 } => REQUEST_MALFORMED,
        #[error("the request is not a readable message: it is compressed, but the call has no grpc-encoding")]
        NoEncoding => REQUEST_MALFORMED,
        #[error("the messages are compressed with {found:?} ({header}), expected gzip or identity")]
        Encoding { header: &'static str, found: String } => COMPRESSION_UNSUPPORTED.at(header),
        #[error("the request broke off in the middle of a message: {reason}")]
        Broken { reason: String } => REQUEST_BROKEN,
        #[error("the request is not a readable message: its body is not valid HTTP: {reason}")]
        Http { reason: String } => REQUEST_MALFORMED,
        #[error(
            "the stream is too far ahead: {limit} bytes of small batches wait to be scored; put more configurations into a \
             batch, read the scores of a batch before sending many more, or raise --stream-window-bytes on the server"
        )]
        Ahead { limit: usize } => STREAM_AHEAD.limit("--stream-window-bytes").allowed(limit),
        #[error("the request is not a readable message: it ends early")]
        Truncated => REQUEST_MALFORMED,
        #[error("the request is not a readable message: it cannot be decompressed: {reason}")]
        Compression { reason: String } => REQUEST_MALFORMED,
        #[error("the request is not a readable message: it has more than {limit} fields")]
        TooManyFields { limit: usize } => REQUEST_MALFORMED,
        #[error("the request is not readable JSON of this method: {reason}")]
        Json { field: String, reason: String }
            => match &**field {
            // The whole message.
            "." => REQUEST_MALFORMED.into(),
            field => REQUEST_MALFORMED.at(field),
        },
        #[error(
            "the message did not arrive within {allowed:?}; send fewer configurations at a time, or raise \
             --max-message-seconds on the server"
        )]
        Late { allowed: Duration } => MESSAGE_LATE,
        #[error(
            "the stream has had no message for {allowed:?}; open another one, or raise --max-stream-idle-seconds on the \
             server"
        )]
        Idle { allowed: Duration } => STREAM_IDLE,
    }
}

impl DeliveryError {
    /// The error of a message in JSON, with the place that its reader had come to.
    pub(crate) fn from_json(track: Track, error: &serde_json::Error) -> Self {
        Self::Json {
            field: track.path().to_string(),
            reason: error.to_string(),
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
