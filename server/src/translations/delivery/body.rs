use std::{collections::VecDeque, future::pending, sync::Arc};

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::{
    call::DeliveredCall,
    decompression::{DecompressedMessage, Decompression, GRPC, Gzip},
    fields::FieldCount,
    frames::{FramePart, Frames, prefix},
    read_ahead::Incoming,
    settings::{DeliverySettings, Waits},
};
use crate::{
    admission::{AdmissionError, AdmissionLimit, Arrival},
    call::work_on,
    errors::{DeliveryError, ServiceError},
    translations::{
        header::PREFIX,
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
    encoding: Option<Gzip>,
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
    stage: DeliveryStage,
}

/// What follows the bytes that are ready.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryStage {
    /// The rest of their message.
    Receiving,
    /// Another message.
    Complete,
    /// Nothing.
    Ended,
}

/// A call whose headers have been read.
pub(crate) struct OpenedCall {
    pub(crate) call: Arc<DeliveredCall>,
    pub(crate) encoding: Option<Gzip>,
    pub(crate) arrival: Arrival,
}

/// Maximum size of JSON that is read on the thread that takes calls.
const INLINE_JSON: usize = 32 << 10;

/// Returns a request whose body has uncompressed messages within the limits.
pub(crate) fn deliver(request: Request, opened: OpenedCall, settings: DeliverySettings) -> Request {
    let (mut parts, body) = request.into_parts();
    // With the header, tonic would decompress the messages again.
    parts.headers.remove(GRPC);
    let json = parts.extensions.get::<JsonMethod>().cloned();
    let delivery = Delivery::new(body, json, opened, settings);
    Request::from_parts(parts, delivery.into_body())
}

impl Delivery {
    fn new(
        body: Body,
        json: Option<JsonMethod>,
        opened: OpenedCall,
        settings: DeliverySettings,
    ) -> Self {
        let limit = settings.max_message_bytes;
        // The flag of its frame says whether a message of gRPC is compressed. JSON has no frames:
        // its header speaks of the whole body.
        let is_compressed_json = json.is_some() && opened.encoding.is_some();
        let incoming = if opened.call.kind.is_stream {
            // The other half of the window is what the transport may hold.
            Incoming::read_ahead(body, settings.stream_window_bytes as usize / 2)
        } else {
            Incoming::Direct(body)
        };
        Self {
            incoming,
            call: opened.call,
            settings,
            arrival: Some(opened.arrival),
            encoding: opened.encoding,
            frames: Frames::new(limit),
            fields: FieldCount::default(),
            waits: Waits::message(),
            arrived: Bytes::new(),
            compressed: is_compressed_json.then(Vec::new),
            json: json.map(|method| JsonMessage::new(method, limit)),
            ready: VecDeque::new(),
            stage: DeliveryStage::Receiving,
        }
    }

    fn into_body(self) -> Body {
        let frames = stream::try_unfold(self, |mut delivery| async {
            let bytes = delivery.next().await?;
            Ok::<_, Status>(bytes.map(|bytes| (Frame::data(bytes), delivery)))
        });
        Body::new(StreamBody::new(frames))
    }

    /// Returns the next bytes for tonic; `None` after the last message. A message is complete, and its call is counted,
    /// before its last bytes are returned.
    async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if self.stage != DeliveryStage::Receiving {
                let ready = self.ready.pop_front();
                if ready.is_some() || self.stage == DeliveryStage::Ended {
                    return Ok(ready);
                }
                self.proceed();
            }
            // `End` follows the last bytes of a message without more of them. The call is therefore
            // counted before tonic has the whole message and calls the handler.
            match self.frames.next(&mut self.arrived)? {
                Some(part) => self.add(part).await?,
                None => match self.ready.pop_front() {
                    Some(bytes) => return Ok(Some(bytes)),
                    None => self.receive().await?,
                },
            }
        }
    }

    async fn add(&mut self, part: FramePart) -> Result<(), Status> {
        match part {
            FramePart::Start {
                is_compressed,
                length,
            } => self.start(is_compressed, length),
            FramePart::Bytes(bytes) => self.take(bytes),
            FramePart::End => self.complete().await,
        }
    }

    /// Waits for the next message after one was taken.
    fn proceed(&mut self) {
        self.stage = DeliveryStage::Receiving;
        // What has arrived with the message may begin the next one.
        self.waits = if self.arrived.is_empty() {
            Waits::next()
        } else {
            Waits::message()
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
        Ok(self.call.place.hold(bytes)?)
    }

    /// Counts the call as in flight, and decompresses the message if it is compressed.
    async fn complete(&mut self) -> Result<(), Status> {
        if let Some(arrival) = self.arrival.take() {
            // The call leaves those that arrive before it takes a place in flight, so that it never
            // has two places.
            drop(arrival);
            self.call.delivered()?;
        }
        if let Some(message) = self.decompressed().await? {
            for piece in &message.pieces {
                self.fields.read(piece)?;
            }
            self.ready.push_back(prefix(message.bytes));
            self.ready.extend(message.pieces);
        }
        self.stage = if self.call.kind.is_stream {
            DeliveryStage::Complete
        } else {
            DeliveryStage::Ended
        };
        Ok(())
    }

    /// Decompresses the message that has arrived, and releases its compressed bytes; `None` if it is
    /// not compressed.
    async fn decompressed(&mut self) -> Result<Option<DecompressedMessage>, ServiceError> {
        let Some(compressed) = self.compressed.take() else {
            return Ok(None);
        };
        let bytes = compressed.len();
        let place = &self.call.place;
        let decompression = Decompression::new(compressed, self.settings, place.clone());
        let message = decompression.finish(&self.call.pool).await?;
        place.release(bytes);
        Ok(Some(message))
    }

    fn take_json(&mut self, bytes: &Bytes) -> Result<(), Status> {
        if let Some(arrival) = &self.arrival {
            arrival.moved();
        }
        self.hold(bytes.len())?;
        if let Some(compressed) = &mut self.compressed {
            // The frame of gRPC gives the length in advance. A body of JSON may be endless.
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

    /// Counts the call as in flight, and reads its message.
    async fn complete_json(&mut self) -> Result<(), Status> {
        self.arrival = None;
        self.call.delivered()?;
        if let Some(message) = self.decompressed().await? {
            for piece in message.pieces {
                // A piece is copied, and its copy held in its place.
                self.push_json(&piece)?;
            }
        }
        let Some(json) = self.json.take() else {
            return Ok(());
        };
        let message = read_json(json, &self.call).await?;
        self.fields.read(&message)?;
        self.ready.extend([prefix(message.len()), message]);
        self.stage = DeliveryStage::Ended;
        Ok(())
    }

    /// Takes in more bytes of the client, or the end of them.
    async fn receive(&mut self) -> Result<(), Status> {
        match self.wait().await? {
            Some(bytes) if self.json.is_some() => self.take_json(&bytes)?,
            None if self.json.is_some() => self.complete_json().await?,
            Some(bytes) => self.arrived(bytes),
            None if self.frames.is_between_messages() => self.stage = DeliveryStage::Ended,
            None => return Err(DeliveryError::Truncated.into()),
        }
        Ok(())
    }

    /// Waits for more bytes of the client, within the time that it has.
    async fn wait(&mut self) -> Result<Option<Bytes>, Status> {
        let (end, late) = self.waits.end(&self.settings);
        // Bytes come first below. A client that always has a few of them ready must still end.
        if end <= Instant::now() {
            return Err(late.into());
        }
        tokio::select! {
            biased;
            bytes = self.incoming.bytes() => Ok(bytes?),
            limit = displaced(self.arrival.as_mut()) => Err(AdmissionError::Displaced(limit).into()),
            () = sleep_until(end) => Err(late.into()),
        }
    }

    fn arrived(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        if let Some(arrival) = &self.arrival {
            arrival.moved();
        }
        if let Waits::Next { .. } = self.waits {
            self.waits = Waits::message();
        }
        self.arrived = bytes;
    }
}

/// Reads a message of JSON: a short one immediately, a long one on the compute threads.
async fn read_json(json: JsonMessage, call: &DeliveredCall) -> Result<Bytes, ServiceError> {
    let sent = json.len();
    // What the values take is held before they exist, because JSON has many of them in few bytes.
    let to_read = json.bytes_to_read();
    call.place.hold(to_read)?;
    let message = work_on(&call.pool, sent, INLINE_JSON, move || json.read()).await??;
    call.place.hold(message.len())?;
    call.place.release(to_read + sent);
    Ok(message)
}

/// Waits until an arriving call has to make room for another.
async fn displaced(arrival: Option<&mut Arrival>) -> AdmissionLimit {
    match arrival {
        Some(arrival) => arrival.displaced().await,
        None => pending().await,
    }
}
