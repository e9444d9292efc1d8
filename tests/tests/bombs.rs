//! Messages that grow when they are decompressed are rejected at the limit. This test has its own binary because it
//! measures its process.

use std::{
    io::{self, Read as _},
    process,
    time::{Duration, Instant},
};

use hlorank_tests::{TestServer, resident_bytes};
use http_body_util::Full;
use tonic::{Code, Status, body::Body, transport::Channel};
use tonic_types::StatusExt;
use tower::ServiceExt as _;

const LIMIT_BYTES: usize = 16 << 20;
const BOMB_BYTES: u64 = 16 * LIMIT_BYTES as u64;

/// Number of simultaneous calls.
const BOMBS: usize = 4;

/// Memory that decompression may take per call: the limit, and as much again for doubling buffers and windows.
const BYTES_OF_EACH: usize = 3 * LIMIT_BYTES;

fn gzip() -> Vec<u8> {
    let mut bomb = Vec::new();
    let zeros = io::repeat(0).take(BOMB_BYTES);
    flate2::read::GzEncoder::new(zeros, flate2::Compression::fast()).read_to_end(&mut bomb).unwrap();
    bomb
}

/// Compresses with a window of 128 MiB, the longest that decoders accept by default.
fn zstd() -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    io::copy(&mut io::repeat(0).take(BOMB_BYTES), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

/// Returns the status of a call whose message is these compressed bytes.
async fn call(channel: Channel, encoding: &'static str, compressed: Vec<u8>) -> Status {
    let mut message = vec![1];
    message.extend(u32::try_from(compressed.len()).unwrap().to_be_bytes());
    message.extend(compressed);
    let request = http::Request::post("/hlorank.v1.CostModelService/RankConfigs")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-encoding", encoding)
        .body(Body::new(Full::new(message.into())))
        .unwrap();
    let answer = channel.oneshot(request).await.unwrap();
    Status::from_header_map(answer.headers()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_decompressed_up_to_the_limit() {
    let limit = format!("--max-message-bytes={LIMIT_BYTES}");
    let server = TestServer::start_with(&[&limit]).await;
    let channel = server.channel().await;
    for (encoding, bomb) in [("gzip", gzip()), ("zstd", zstd())] {
        let before = resident_bytes(process::id());
        let started = Instant::now();
        let bombs = (0..BOMBS).map(|_| tokio::spawn(call(channel.clone(), encoding, bomb.clone())));
        let bombs: Vec<_> = bombs.collect();
        let mut most = before;
        while !bombs.iter().all(tokio::task::JoinHandle::is_finished) {
            most = most.max(resident_bytes(process::id()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        println!(
            "{encoding}: {} bytes for {} MiB; {BOMBS} at once took {} MiB and {:?}",
            bomb.len(),
            BOMB_BYTES >> 20,
            (most - before) >> 20,
            started.elapsed()
        );
        for refused in bombs {
            let refused = refused.await.unwrap();
            let reason = refused.get_details_error_info().unwrap().reason;
            assert_eq!((refused.code(), reason.as_str()), (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
            assert!(refused.message().contains("--max-message-bytes"), "{}", refused.message());
        }
        assert!(most < before + BOMBS * BYTES_OF_EACH, "from {before} to {most} bytes");
    }
}
