//! Messages that grow when they are decompressed are rejected at the limit. This test has its own binary because it
//! measures its process.

use std::{
    io::Write,
    process,
    time::{Duration, Instant},
};

use hlorank_tests::{TestServer, resident_bytes};
use http_body_util::Full;
use prost::encoding::{WireType, encode_key, encode_varint};
use tokio::task::JoinHandle;
use tonic::{Code, Status, body::Body, transport::Channel};
use tonic_types::StatusExt;
use tower::ServiceExt as _;

const LIMIT_BYTES: usize = 16 << 20;
const BOMB_BYTES: usize = 16 * LIMIT_BYTES;

/// Each page of a bomb begins with some random bytes.
const PAGE_BYTES: usize = 4096;
const RANDOM_BYTES: usize = 16;

/// Number of simultaneous calls.
const BOMBS: usize = 4;

/// Memory that decompression may take per call: the limit, and as much again for doubling buffers and windows.
const BYTES_OF_EACH: usize = 3 * LIMIT_BYTES;

/// Memory and time that a message of repetitions may take, the time generous for a busy machine.
const BYTES_OF_A_REPETITION: usize = 32 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

/// Fields around the tiles: the batch of a request, and its tiles in the readable form.
const TILE_CONFIGS: [u32; 2] = [2, 4];

fn gzip(message: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(message).unwrap();
    encoder.finish().unwrap()
}

/// Returns what compresses well, but to more than a 500th of its size, which is the limit.
fn pages() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut pages = vec![0; BOMB_BYTES];
    for page in pages.chunks_mut(PAGE_BYTES) {
        random.fill(&mut page[..RANDOM_BYTES]);
    }
    pages
}

/// Returns the status of a call whose message is these compressed bytes.
async fn call(channel: Channel, compressed: Vec<u8>) -> Status {
    let mut message = vec![1];
    message.extend(u32::try_from(compressed.len()).unwrap().to_be_bytes());
    message.extend(compressed);
    let request = http::Request::post("/hlorank.v1.CostModelService/RankConfigs")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-encoding", "gzip")
        .body(Body::new(Full::new(message.into())))
        .unwrap();
    let answer = channel.oneshot(request).await.unwrap();
    Status::from_header_map(answer.headers()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_grow_are_refused() {
    a_message_is_decompressed_up_to_the_limit().await;
    repetitions_are_refused_long_before_the_limit().await;
}

/// Returns the most memory of this process until the calls have ended.
async fn most_memory(calls: &[JoinHandle<Status>]) -> usize {
    let mut most = resident_bytes(process::id());
    while !calls.iter().all(JoinHandle::is_finished) {
        most = most.max(resident_bytes(process::id()));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    most
}

/// Returns empty tiles in the readable form, of the default limit of bytes.
fn empty_tiles() -> Vec<u8> {
    const TILES: usize = (64 << 20) / 2 - 16;
    let mut tiles = Vec::new();
    encode_key(1, WireType::LengthDelimited, &mut tiles);
    tiles.push(0);
    let tiles = tiles.repeat(TILES);
    TILE_CONFIGS.iter().rev().fold(tiles, |message, &field| {
        let mut outer = Vec::new();
        encode_key(field, WireType::LengthDelimited, &mut outer);
        encode_varint(message.len() as u64, &mut outer);
        outer.extend(message);
        outer
    })
}

async fn repetitions_are_refused_long_before_the_limit() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let bomb = gzip(&empty_tiles());
    // The first call allocates what later calls use again.
    for times in [1, 1, 4] {
        let (started, before) = (Instant::now(), resident_bytes(process::id()));
        let bombs: Vec<_> = (0..times)
            .map(|_| tokio::spawn(call(channel.clone(), bomb.clone())))
            .collect();
        let most = most_memory(&bombs).await;
        let took = started.elapsed();
        println!(
            "{times} of {} bytes took {} KiB and {took:?}",
            bomb.len(),
            (most - before) >> 10
        );
        for refused in bombs {
            let refused = refused.await.unwrap();
            let info = refused.get_details_error_info().unwrap();
            assert_eq!(
                (refused.code(), info.reason.as_str()),
                (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
            );
            assert_eq!(info.metadata["allowed"], "500", "{refused}");
        }
        assert!(
            most < before + times * BYTES_OF_A_REPETITION,
            "from {before} to {most} bytes"
        );
        assert!(took < PATIENCE, "{took:?}");
    }
}

async fn a_message_is_decompressed_up_to_the_limit() {
    let limit = format!("--max-message-bytes={LIMIT_BYTES}");
    let server = TestServer::start_with(&[&limit]).await;
    let channel = server.channel().await;
    let bomb = gzip(&pages());
    let before = resident_bytes(process::id());
    let started = Instant::now();
    let bombs = (0..BOMBS).map(|_| tokio::spawn(call(channel.clone(), bomb.clone())));
    let bombs: Vec<_> = bombs.collect();
    let most = most_memory(&bombs).await;
    println!(
        "{} bytes for {} MiB; {BOMBS} at once took {} MiB and {:?}",
        bomb.len(),
        BOMB_BYTES >> 20,
        (most - before) >> 20,
        started.elapsed()
    );
    for refused in bombs {
        let refused = refused.await.unwrap();
        let reason = refused.get_details_error_info().unwrap().reason;
        assert_eq!(
            (refused.code(), reason.as_str()),
            (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
        );
        assert!(
            refused.message().contains("--max-message-bytes"),
            "{}",
            refused.message()
        );
    }
    assert!(
        most < before + BOMBS * BYTES_OF_EACH,
        "from {before} to {most} bytes"
    );
}
