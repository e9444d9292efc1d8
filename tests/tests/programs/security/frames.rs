//! Clients that send frames of HTTP/2 which no well-behaved client sends.

use hlorank_tests::{
    attackers::frames::{HELLO, frame},
    prelude::*,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::security::secured::list_models;

/// Maximum wait for the end of a connection on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends a frame again and again, until the server closes the connection. Returns the number of frames that were sent until the
/// client noticed.
async fn frames_until_closed(
    endpoint: &str,
    first: &[u8],
    repeated: &[u8],
    most: usize,
) -> Option<usize> {
    let stream = TcpStream::connect(endpoint.trim_start_matches("http://"))
        .await
        .unwrap();
    let (mut reader, mut writer) = stream.into_split();
    let answers = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
    });
    writer.write_all(&[HELLO, first].concat()).await.unwrap();
    for sent in 1..=most {
        if answers.is_finished() || writer.write_all(repeated).await.is_err() {
            return Some(sent);
        }
        if sent % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    timeout(PATIENCE, answers).await.ok().map(|_| most)
}

#[tokio::test]
async fn headers_without_end_close_the_connection() {
    let server = TestServer::start().await;
    // Headers without END_HEADERS, and continuations of one byte each, which would be one header of any size.
    let headers = frame(1, 0, 1, b"");
    for payload in [&b""[..], b"\0", &[0; 16 << 10]] {
        let closed = frames_until_closed(
            server.endpoint(),
            &headers,
            &frame(9, 0, 1, payload),
            100_000,
        )
        .await;
        println!(
            "continuations of {} bytes: closed after {closed:?} frames",
            payload.len()
        );
        assert!(closed.is_some(), "continuations of {} bytes", payload.len());
    }
    assert!(list_models(server.channel().await).await.is_ok());
}

#[tokio::test]
async fn floods_of_pings_and_settings_take_no_memory() {
    const FRAMES: usize = 200_000;
    let server = ServerProcess::start(&[]);
    let channel = tonic::transport::Endpoint::from_shared(server.endpoint().to_owned())
        .unwrap()
        .connect()
        .await;
    let channel = channel.unwrap();
    list_models(channel.clone()).await.unwrap();
    let before = server.resident_bytes();
    for (name, frame) in [
        ("pings", frame(6, 0, 0, &[7; 8])),
        ("settings", frame(4, 0, 0, b"")),
    ] {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let flood = tokio::spawn(async move {
            writer.write_all(HELLO).await.unwrap();
            for _ in 0..FRAMES / 100 {
                // An error means that the server has closed the connection.
                let Ok(()) = writer.write_all(&frame.repeat(100)).await else {
                    return;
                };
            }
        });
        // The client reads nothing, so the server must not keep its answers either.
        let mut calls = 0;
        for _ in 0..50 {
            list_models(channel.clone()).await.unwrap();
            calls += 1;
        }
        let unread = server.resident_bytes().saturating_sub(before);
        let reading = tokio::spawn(async move {
            let mut answers = vec![0; 64 << 10];
            while matches!(reader.read(&mut answers).await, Ok(bytes) if bytes > 0) {}
        });
        timeout(PATIENCE, flood)
            .await
            .expect("the flood ends")
            .unwrap();
        list_models(channel.clone()).await.unwrap();
        let grown = server.resident_bytes().saturating_sub(before);
        println!(
            "{FRAMES} {name}: {calls} calls beside it, {unread} bytes more unread, {grown} bytes more read"
        );
        assert!(
            unread.max(grown) < 16 << 20,
            "{name}: {unread} and {grown} bytes"
        );
        reading.abort();
    }
}
