use std::{collections::VecDeque, future::pending, sync::Arc};

use bytes::Bytes;
use futures::stream;
use http::Request;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, body::Body};

use super::{
    DeliverySettings,
    call::DeliveredCall,
    decompression::{DecompressedMessage, Decompression, Encoding, GRPC},
    fields::FieldCount,
    frames::{Frames, PREFIX, Part, prefix},
    read_ahead::Incoming,
};
use crate::{
    admission::{AdmissionError, AdmissionLimit, Arrival},
    call::CallError,
    compute::Class,
    service::{
        ServiceError,
        delivery_error::DeliveryError,
        json::{JsonMessage, JsonMethod},
    },
};

/// Receives the messages of a call.
struct Delivery {
    incoming: Incoming,
    call: Arc<DeliveredCall>,
    settings: DeliverySettings,
    /// `None` after the first message has arrived.
    arrival: Option<Arrival>,
    encoding: Option<Encoding>,
    frames: Frames,
    fields: FieldCount,
    waits: Waits,
    /// Bytes that arrived and belong to no message yet.
    arrived: Bytes,
    /// The message that arrives, if it is compressed.
    compressed: Option<Vec<u8>>,
    /// The message that arrives, if it is JSON: the whole body, without frames.
    json: Option<JsonMessage>,
    /// Bytes for tonic, of at most one message.
    ready: VecDeque<Bytes>,
    stage: Stage,
}

/// What the server waits for.
#[derive(Clone, Copy)]
enum Waits {
    /// The rest of a message. The first message begins with the headers.
    Message { since: Instant },
    /// The next message of a stream.
    Next { since: Instant },
}

/// What follows the bytes that are ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The rest of their message.
    Receiving,
    /// Another message.
    Complete,
    /// Nothing.
    Ended,
}

/// A call whose headers have been read.
pub(in crate::service) struct OpenedCall {
    pub(in crate::service) call: Arc<DeliveredCall>,
    pub(in crate::service) encoding: Option<Encoding>,
    pub(in crate::service) arrival: Arrival,
}

/// Maximum size of JSON that is read on the thread that takes calls.
const INLINE_JSON: usize = 32 << 10;

/// Returns a request whose body has uncompressed messages within the limits.
pub(in crate::service) fn deliver(
    request: Request<Body>,
    opened: OpenedCall,
    settings: DeliverySettings,
) -> Request<Body> {
    let (mut parts, body) = request.into_parts();
    // Tonic would decompress the messages again.
    parts.headers.remove(GRPC);
    let json = parts.extensions.get::<JsonMethod>().cloned();
    let is_compressed_json = json.is_some() && opened.encoding.is_some();
    let incoming = if opened.call.kind.is_stream {
        Incoming::read_ahead(body, settings.stream_window_bytes as usize / 2)
    } else {
        Incoming::Direct(body)
    };
    let waits = Waits::Message {
        since: Instant::now(),
    };
    let delivery = Delivery {
        incoming,
        call: opened.call,
        settings,
        arrival: Some(opened.arrival),
        encoding: opened.encoding,
        frames: Frames::new(settings.max_message_bytes),
        fields: FieldCount::default(),
        waits,
        arrived: Bytes::new(),
        compressed: is_compressed_json.then(Vec::new),
        json: json.map(|method| JsonMessage::new(method, settings.max_message_bytes)),
        ready: VecDeque::new(),
        stage: Stage::Receiving,
    };
    let frames = stream::try_unfold(delivery, |mut delivery| async {
        let bytes = delivery.next().await?;
        Ok::<_, Status>(bytes.map(|bytes| (Frame::data(bytes), delivery)))
    });
    Request::from_parts(parts, Body::new(StreamBody::new(frames)))
}

impl Waits {
    /// Returns until when the server waits, and the error of a call that takes longer.
    fn end(self, settings: &DeliverySettings) -> (Instant, DeliveryError) {
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

impl Delivery {
    /// Returns the next bytes for tonic; `None` after the last message. A message is complete, and its call is counted,
    /// before its last bytes are returned.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if self.stage != Stage::Receiving {
                let ready = self.ready.pop_front();
                if ready.is_some() || self.stage == Stage::Ended {
                    return Ok(ready);
                }
                self.proceed();
            }
            match self.frames.next(&mut self.arrived)? {
                Some(Part::Start {
                    is_compressed,
                    length,
                }) => self.start(is_compressed, length)?,
                Some(Part::Bytes(bytes)) => self.take(bytes)?,
                Some(Part::End) => self.complete().await?,
                None => match self.ready.pop_front() {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => self.receive().await?,
                },
            }
        }
    }

    /// Waits for the next message after one was taken.
    fn proceed(&mut self) {
        self.stage = Stage::Receiving;
        let since = Instant::now();
        // What has arrived with the message may begin the next one.
        self.waits = if self.arrived.is_empty() {
            Waits::Next { since }
        } else {
            Waits::Message { since }
        };
    }

    fn start(&mut self, is_compressed: bool, length: usize) -> Result<(), Status> {
        if is_compressed && self.encoding.is_none() {
            return Err(DeliveryError::NoEncoding.into());
        }
        self.hold(PREFIX)?;
        self.fields = FieldCount::default();
        if is_compressed {
            self.compressed = Some(Vec::new());
        } else {
            self.ready.push_back(prefix(length));
        }
        Ok(())
    }

    fn take(&mut self, bytes: Bytes) -> Result<(), Status> {
        self.hold(bytes.len())?;
        if let Some(compressed) = &mut self.compressed {
            compressed.extend_from_slice(&bytes);
        } else {
            self.fields.read(&bytes)?;
            self.ready.push_back(bytes);
        }
        Ok(())
    }

    fn hold(&self, bytes: usize) -> Result<(), Status> {
        Ok(self.call.place.hold(bytes).map_err(CallError::from)?)
    }

    /// Counts the call as in flight, and decompresses the message if it is compressed.
    async fn complete(&mut self) -> Result<(), Status> {
        if let Some(arrival) = self.arrival.take() {
            drop(arrival);
            self.call.delivered()?;
        }
        if let (Some(compressed), Some(encoding)) = (self.compressed.take(), self.encoding) {
            self.decompress(compressed, encoding).await?;
        }
        self.stage = if self.call.kind.is_stream {
            Stage::Complete
        } else {
            Stage::Ended
        };
        Ok(())
    }

    async fn decompress(&mut self, compressed: Vec<u8>, encoding: Encoding) -> Result<(), Status> {
        let message = decompressed(&self.call, self.settings, compressed, encoding).await?;
        for piece in &message.pieces {
            self.fields.read(piece)?;
        }
        self.ready.push_back(prefix(message.bytes));
        self.ready.extend(message.pieces);
        Ok(())
    }

    fn take_json(&mut self, bytes: &Bytes) -> Result<(), Status> {
        if let Some(arrival) = &self.arrival {
            arrival.moved();
        }
        self.hold(bytes.len())?;
        if let Some(compressed) = &mut self.compressed {
            let found = compressed.len() + bytes.len();
            let limit = self.settings.max_message_bytes;
            if found > limit {
                return Err(DeliveryError::TooLarge { found, limit }.into());
            }
            compressed.extend_from_slice(bytes);
            return Ok(());
        }
        Ok(self.push_json(bytes)?)
    }

    fn push_json(&mut self, bytes: &[u8]) -> Result<(), DeliveryError> {
        self.json.as_mut().map_or(Ok(()), |json| json.push(bytes))
    }

    /// Counts the call as in flight, and reads its message: a short one immediately, a long one on the compute threads.
    async fn complete_json(&mut self) -> Result<(), Status> {
        self.arrival = None;
        self.call.delivered()?;
        if let (Some(compressed), Some(encoding)) = (self.compressed.take(), self.encoding) {
            let message = decompressed(&self.call, self.settings, compressed, encoding).await?;
            for piece in message.pieces {
                // A piece is copied, and its copy held in its place.
                self.push_json(&piece)?;
            }
        }
        let Some(json) = self.json.take() else {
            return Ok(());
        };
        let sent = json.len();
        let to_read = json.bytes_to_read();
        self.hold(to_read)?;
        let message = if sent <= INLINE_JSON {
            json.read()
        } else {
            let read = self.call.pool.run(Class::Bulk, move |_| json.read()).await;
            read.map_err(CallError::from)?.value
        };
        let message = message?;
        self.hold(message.len())?;
        self.call.place.release(to_read + sent);
        self.fields.read(&message)?;
        self.ready.extend([prefix(message.len()), message]);
        self.stage = Stage::Ended;
        Ok(())
    }

    /// Waits for more bytes of the client, within the time that it has.
    async fn receive(&mut self) -> Result<(), Status> {
        let (end, late) = self.waits.end(&self.settings);
        if end <= Instant::now() {
            return Err(late.into());
        }
        let bytes = tokio::select! {
            biased;
            bytes = self.incoming.bytes() => bytes?,
            limit = displaced(self.arrival.as_mut()) => return Err(AdmissionError::Displaced(limit).into()),
            () = sleep_until(end) => return Err(late.into()),
        };
        match bytes {
            Some(bytes) if self.json.is_some() => self.take_json(&bytes)?,
            None if self.json.is_some() => self.complete_json().await?,
            Some(bytes) => self.arrived(bytes),
            None if self.frames.is_between_messages() => self.stage = Stage::Ended,
            None => return Err(DeliveryError::Truncated.into()),
        }
        Ok(())
    }

    fn arrived(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        if let Some(arrival) = &self.arrival {
            arrival.moved();
        }
        if let Waits::Next { .. } = self.waits {
            self.waits = Waits::Message {
                since: Instant::now(),
            };
        }
        self.arrived = bytes;
    }
}

/// Decompresses a message, and releases its compressed bytes.
async fn decompressed(
    call: &DeliveredCall,
    settings: DeliverySettings,
    compressed: Vec<u8>,
    encoding: Encoding,
) -> Result<DecompressedMessage, ServiceError> {
    let bytes = compressed.len();
    let decompression = Decompression::new(encoding, compressed, settings, call.place.clone())?;
    let message = decompression.finish(&call.pool).await?;
    call.place.release(bytes);
    Ok(message)
}

/// Waits until an arriving call has to make room for another.
async fn displaced(arrival: Option<&mut Arrival>) -> AdmissionLimit {
    match arrival {
        Some(arrival) => arrival.displaced().await,
        None => pending().await,
    }
}
