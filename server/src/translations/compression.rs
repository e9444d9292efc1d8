//! Compresses the messages of answers, the long ones in steps behind other work.

use std::{
    io::{self, Write as _},
    sync::Arc,
};

use axum::{body::Body, response::Response};
use bytes::{Buf as _, Bytes};
use flate2::write::GzEncoder;
use futures::stream;
use hlorank_graph::pace;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tonic::Status;

use super::delivery::{DeliveredCall, GRPC_ENCODING, Gzip, PREFIX};
use crate::{admission::Place, call::work_on, compute::ComputePool};

/// What compressing the answer of a call with gzip takes.
pub(crate) struct Compression {
    place: Place,
    pool: Arc<ComputePool>,
}

/// The header of gRPC that names the compressions that a client reads.
const ACCEPT_ENCODING: &str = "grpc-accept-encoding";

/// Maximum size of a message that is compressed on the thread that takes calls.
const INLINE_BYTES: usize = 8 << 10;

/// Bytes of a message between two pauses: a millisecond of gzip.
const STEP_BYTES: usize = 16 << 10;

impl Compression {
    /// An answer is compressed if the request is, too. Most clients offer to read gzip with every call, and compressing scores
    /// costs more than sending them on any network that a tuner would use.
    pub(crate) fn like_request(
        request: Option<Gzip>,
        headers: &HeaderMap,
        call: &DeliveredCall,
    ) -> Option<Self> {
        request?;
        let accepted = headers.get(ACCEPT_ENCODING)?.to_str().ok()?;
        let mut accepted = accepted.split(',').map(str::trim);
        accepted.any(Gzip::is_named).then(|| Self {
            place: call.place.clone(),
            pool: Arc::clone(&call.pool),
        })
    }

    /// Compresses the messages of an answer. A failure, which has no message, stays as it is.
    pub(crate) fn apply(self, response: Response) -> Response {
        if Status::from_header_map(response.headers()).is_some() {
            return response;
        }
        // The headers go out first, so they promise the encoding before any message is compressed.
        let (mut head, body) = response.into_parts();
        let name = HeaderValue::from_static("gzip");
        head.headers.insert(GRPC_ENCODING, name);
        Response::from_parts(head, self.compressed_body(body))
    }

    fn compressed_body(self, body: Body) -> Body {
        let frames = stream::try_unfold((self, body), |(compression, mut body)| async move {
            let frame = compression.next_frame(&mut body).await?;
            Ok::<_, Status>(frame.map(|frame| (frame, (compression, body))))
        });
        Body::new(StreamBody::new(Box::pin(frames)))
    }

    async fn next_frame(&self, body: &mut Body) -> Result<Option<Frame<Bytes>>, Status> {
        let frame = body.frame().await.transpose();
        let frame = frame.map_err(|error| Status::from_error(error.into()))?;
        let Some(frame) = frame else {
            return Ok(None);
        };
        Ok(Some(match frame.into_data() {
            Ok(messages) => Frame::data(self.messages(messages).await?),
            Err(trailers) => trailers,
        }))
    }

    /// Compresses whole messages with their prefixes, which is what tonic writes at a time.
    async fn messages(&self, uncompressed: Bytes) -> Result<Bytes, Status> {
        // The call holds what the messages take at most, beside what they are. Without room they stay as they are.
        let held = uncompressed.len();
        if self.place.hold(held).is_err() {
            return Ok(uncompressed);
        }
        let compress = move || compressed(uncompressed);
        let written = work_on(&self.pool, held, INLINE_BYTES, compress).await?;
        let written = written.map_err(|error| Status::internal(error.to_string()))?;
        self.place.release(held.saturating_sub(written.len()));
        Ok(written)
    }
}

/// Compresses every message that gets shorter by it.
fn compressed(mut messages: Bytes) -> io::Result<Bytes> {
    let mut written = Vec::with_capacity(messages.len() / 2);
    while messages.len() >= PREFIX {
        // The flag, which says that the message is not compressed.
        messages.advance(1);
        let length = messages.get_u32() as usize;
        let message = messages.split_to(length.min(messages.len()));
        let shorter = compressed_message(&message)?;
        // The flag before each message lets an answer mix both.
        if shorter.len() < message.len() {
            push_message(&mut written, 1, &shorter);
        } else {
            push_message(&mut written, 0, &message);
        }
    }
    Ok(written.into())
}

/// Adds a message and its prefix: the flag, which is 1 if it is compressed, and its length.
fn push_message(written: &mut Vec<u8>, flag: u8, message: &[u8]) {
    // Not longer than the uncompressed message, whose length has 32 bits.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    written.push(flag);
    written.extend_from_slice(&length.to_be_bytes());
    written.extend_from_slice(message);
}

fn compressed_message(message: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    for step in message.chunks(STEP_BYTES) {
        encoder.write_all(step)?;
        pace::pause();
    }
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Returns messages with their prefixes.
    fn framed(messages: &[&[u8]]) -> Bytes {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.push(0);
            bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(message);
        }
        bytes.into()
    }

    #[test]
    fn only_messages_that_get_shorter_are_compressed() {
        let long = vec![7; 100_000];
        let messages = framed(&[b"", b"ab", &long]);
        let written = compressed(messages).unwrap();
        let unchanged = framed(&[b"", b"ab"]);
        let (first, last) = written.split_at(unchanged.len());
        assert_eq!(first, unchanged);
        assert_eq!(last[0], 1);
        let mut read = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&last[PREFIX..]);
        decoder.read_to_end(&mut read).unwrap();
        assert_eq!(read, long);
    }
}
