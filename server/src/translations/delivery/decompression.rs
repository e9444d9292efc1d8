//! Decompresses messages step by step, within limits.

use std::io::{Cursor, Read as _};

use bytes::Bytes;
use flate2::bufread::GzDecoder;
use http::HeaderMap;

use super::DeliverySettings;
use crate::{
    admission::Place,
    compute::{Class, ComputePool},
    errors::{DeliveryError, ServiceError},
    memory::MemoryFull,
    translations::header::read_header,
};

/// The messages of a call are compressed with gzip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gzip;

/// A message that is being decompressed.
pub(super) struct Decompression {
    reader: GzDecoder<Cursor<Vec<u8>>>,
    settings: DeliverySettings,
    place: Place,
    /// Bytes of the compressed message.
    compressed: usize,
    /// The part of the decoder's window that is filled, which the call holds.
    window_held: usize,
    message: DecompressedMessage,
}

/// A decompressed message, in pieces that the call holds.
#[derive(Default)]
pub(super) struct DecompressedMessage {
    pub(super) pieces: Vec<Bytes>,
    pub(super) bytes: usize,
}

/// The header of gRPC that names the compression of messages.
pub(super) const GRPC: &str = "grpc-encoding";

/// The header of HTTP that does.
const CONTENT: &str = "content-encoding";

/// No compression.
const IDENTITY: &str = "identity";

/// Maximum size of the pieces of a message, so that a message that grows is not copied.
const PIECE_BYTES: usize = 128 << 10;

/// Bytes that are decompressed on the thread that takes calls. The rest is left to the compute threads.
const INLINE_BYTES: usize = PIECE_BYTES;

/// Bytes that a compute thread decompresses before it takes other work, which is a few milliseconds.
const TURN_BYTES: usize = 1 << 20;

/// Maximum size of a message as a multiple of its compressed size. Batches stay below half of it.
const MAX_RATIO: usize = 500;

/// Decompressed bytes up to which a message is not compared with its compressed size. A short message whose content
/// repeats itself can have any ratio.
const MIN_RATIO_BYTES: usize = 4 << 20;

/// Number of bytes that a decoder keeps beside its output.
const WINDOW_BYTES: usize = 32 << 10;

impl Gzip {
    /// Returns whether the messages of a call with these headers are compressed. gRPC and JSON name it in different headers.
    pub(crate) fn from_headers(
        headers: &HeaderMap,
        is_json: bool,
    ) -> Result<Option<Self>, ServiceError> {
        let (own, other, expected) = if is_json {
            (CONTENT, GRPC, "none: JSON has content-encoding")
        } else {
            (GRPC, CONTENT, "none: gRPC has grpc-encoding")
        };
        // An encoding in the header of the other kind would be ignored, and the message unreadable.
        let none = |text: &str| (text == IDENTITY).then_some(());
        read_header(headers, other, none, expected)?;
        Self::read(headers, own)
    }

    fn read(headers: &HeaderMap, header: &'static str) -> Result<Option<Self>, ServiceError> {
        let lower_case = |text: &str| Some(text.to_ascii_lowercase());
        let found = read_header(headers, header, lower_case, "one encoding")?;
        let Some(found) = found.filter(|name| name != IDENTITY) else {
            return Ok(None);
        };
        // RFC 9110, 8.4.1.3: the second is another name of the first.
        if matches!(found.as_str(), "gzip" | "x-gzip") {
            Ok(Some(Self))
        } else {
            Err(DeliveryError::Encoding { header, found }.into())
        }
    }
}

impl Decompression {
    pub(super) fn new(compressed: Vec<u8>, settings: DeliverySettings, place: Place) -> Self {
        Self {
            settings,
            place,
            compressed: compressed.len(),
            reader: GzDecoder::new(Cursor::new(compressed)),
            window_held: 0,
            message: DecompressedMessage::default(),
        }
    }

    /// Decompresses the whole message: a short one immediately, a long one on the compute threads.
    pub(super) async fn finish(
        mut self,
        pool: &ComputePool,
    ) -> Result<DecompressedMessage, ServiceError> {
        // Each turn is queued anew behind other work, so that a long message delays no short call
        // by more than one turn.
        let mut is_complete = self.proceed(INLINE_BYTES)?;
        while !is_complete {
            let turn = pool.run(Class::Bulk, move |_| (self.proceed(TURN_BYTES), self));
            let (result, decompression) = turn.await?.value;
            (is_complete, self) = (result?, decompression);
        }
        self.place.release(self.window_held);
        Ok(self.message)
    }

    /// Holds the part of the window that `bytes` more decompressed bytes fill.
    fn hold_window(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        let bytes = bytes.min(WINDOW_BYTES - self.window_held);
        self.window_held += bytes;
        self.place.hold(bytes)
    }

    /// Decompresses at least `bytes` more bytes, and returns whether the message is complete.
    fn proceed(&mut self, bytes: usize) -> Result<bool, ServiceError> {
        let end = self.message.bytes + bytes;
        while self.message.bytes < end {
            let piece = self.piece()?;
            if piece.is_empty() {
                return Ok(true);
            }
            // The window of a decoder is filled with what it decompresses.
            self.hold_window(piece.len())?;
            self.message.bytes += piece.len();
            self.message.pieces.push(piece);
            self.check()?;
        }
        Ok(false)
    }

    /// Decompresses the next piece, which is empty at the end of the message.
    fn piece(&mut self) -> Result<Bytes, ServiceError> {
        // A short message does not hold a whole piece: its first has room for a ratio of eight.
        let size = PIECE_BYTES.min((8 * self.compressed).max(1024));
        self.place.hold(size)?;
        let mut piece = vec![0; size];
        let mut filled = 0;
        while filled < size {
            let read = self.reader.read(&mut piece[filled..]);
            match read.map_err(DeliveryError::from)? {
                0 => break,
                read => filled += read,
            }
        }
        // The rest is released to other calls, so a short piece must not keep its allocation.
        piece.truncate(filled);
        self.place.release(size - filled);
        Ok(if filled < size / 2 {
            Bytes::copy_from_slice(&piece)
        } else {
            piece.into()
        })
    }

    fn check(&self) -> Result<(), DeliveryError> {
        let bytes = self.message.bytes;
        let limit = self.settings.max_message_bytes;
        if bytes > limit {
            return Err(DeliveryError::DecompressedTooLarge { limit });
        }
        let compressed = self.compressed;
        let ratio = MAX_RATIO;
        // The division cannot overflow, as `compressed * ratio` could.
        if bytes > MIN_RATIO_BYTES && bytes / ratio > compressed {
            return Err(DeliveryError::RatioTooLarge { compressed, ratio });
        }
        Ok(())
    }
}
