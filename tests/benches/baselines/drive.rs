//! A closed loop of clients that send prepared request bodies.

use std::sync::atomic::{AtomicUsize, Ordering};

use hlorank_tests::prelude::*;
use prost::bytes::{Buf as _, BufMut as _};
use tonic::{
    client::Grpc,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
};

use crate::wire::Wire;

/// Result of a closed loop.
pub(crate) struct Load {
    pub(crate) requests_per_second: f64,
    pub(crate) latencies: Times,
}

/// Sends the bodies in order, each once. Every channel is one client, which waits for an answer before it sends the
/// next request. Ends after `time`, or when no body is left.
pub(crate) async fn drive(
    channels: &[Channel],
    wire: Wire,
    bodies: Vec<Bytes>,
    time: Duration,
) -> Load {
    let (bodies, next) = (Arc::new(bodies), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let mut clients = JoinSet::new();
    for channel in channels {
        let (channel, bodies, next) = (channel.clone(), Arc::clone(&bodies), Arc::clone(&next));
        clients.spawn(async move {
            let mut latencies = Vec::new();
            while started.elapsed() < time {
                let Some(body) = bodies.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                let asked = Instant::now();
                let answer = call(&channel, wire, body.clone()).await;
                latencies.push(asked.elapsed());
                assert!(!answer.expect("an answer").is_empty());
            }
            latencies
        });
    }
    let latencies: Vec<Duration> = clients.join_all().await.concat();
    Load {
        requests_per_second: latencies.len() as f64 / started.elapsed().as_secs_f64(),
        latencies: Times::new(latencies),
    }
}

/// Makes one call with an encoded body, and does not decode the answer.
pub(crate) async fn call(channel: &Channel, wire: Wire, body: Bytes) -> Result<Bytes, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))?;
    let answer = grpc.unary(Request::new(body), wire.path(), Bare).await?;
    Ok(answer.into_inner())
}

/// Codec of encoded messages.
struct Bare;

impl Codec for Bare {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
        Ok(())
    }
}

impl Decoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
