//! Clients that send frames of HTTP/2 which no well-behaved client sends.

use hlorank_tests::{
    attackers::frames::{HELLO, PING, frame},
    prelude::*,
};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::security::secured::list_models;

/// Maximum wait for the end of a connection on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn headers_without_end_close_the_connection() {
    const MOST: usize = 100_000;
    let server = TestServer::start().await;
    // Headers without END_HEADERS, and continuations of one byte each, which would be one header of any size.
    let headers = frame(1, 0, 1, b"");
    for payload in [&b""[..], b"\0", &[0; 16 << 10]] {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let (mut reader, mut writer) = stream.into_split();
        let answers = tokio::spawn(async move {
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        });
        writer.write_all(&[HELLO, &headers].concat()).await.unwrap();
        let continuation = frame(9, 0, 1, payload);
        for sent in 0..MOST {
            if answers.is_finished() || writer.write_all(&continuation).await.is_err() {
                break;
            }
            if sent % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let closed = timeout(PATIENCE, answers).await;
        assert!(closed.is_ok(), "continuations of {} bytes", payload.len());
    }
    assert!(list_models(server.channel().await).await.is_ok());
}

#[tokio::test]
async fn floods_of_pings_and_settings_take_no_memory() {
    const FRAMES: usize = 200_000;
    let server = ServerProcess::start(&[]);
    let channel = server.channel().await;
    list_models(channel.clone()).await.unwrap();
    let before = server.resident_bytes();
    for (name, frame) in [("pings", PING.to_vec()), ("settings", frame(4, 0, 0, b""))] {
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
        for _ in 0..50 {
            list_models(channel.clone()).await.unwrap();
        }
        let unread = server.resident_bytes();
        let reading = tokio::spawn(async move {
            let _ = tokio::io::copy(&mut reader, &mut tokio::io::sink()).await;
        });
        timeout(PATIENCE, flood)
            .await
            .expect("the flood ends")
            .unwrap();
        list_models(channel.clone()).await.unwrap();
        let grown = unread.max(server.resident_bytes()).saturating_sub(before);
        assert!(grown < 16 << 20, "{name}: {grown} bytes");
        reading.abort();
    }
}
