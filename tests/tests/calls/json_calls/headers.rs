//! Headers that cannot be read are refused with their name, their value and what is expected.

use std::io::Write as _;

use hlorank_tests::{attackers::messages::gzip, prelude::*};

use crate::json_calls::curl::{Answered, LIST, call, call_with};

async fn list_with(server: &TestServer, header: &str) -> Answered {
    call_with(server.endpoint(), LIST, "{}", &["--header", header]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_cannot_be_read_is_refused() {
    let server = TestServer::start().await;
    for (name, value, words) in [
        ("grpc-timeout", "1ms", "5S or 250m"),
        ("connect-timeout-ms", "5S", "milliseconds"),
        ("connect-timeout-ms", "-1", "milliseconds"),
        ("connect-timeout-ms", "12345678901", "milliseconds"),
        ("connect-protocol-version", "2", "expected 1"),
        ("grpc-encoding", "gzip", "content-encoding"),
    ] {
        let refused = list_with(&server, &format!("{name}: {value}")).await;
        let error = refused.assert_refused(400, "HEADER_INVALID");
        assert_eq!(error["fields"][0], name);
        says!(error["message"].as_str().unwrap(), name, value, words);
    }
    let query = call(server.endpoint(), &format!("{LIST}?timeout=5"), "{}").await;
    let error = query.assert_refused(400, "HEADER_INVALID");
    says!(error.to_string(), "timeout=5", "without a query");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_is_kept() {
    let server = TestServer::start().await;
    for enough in [
        "grpc-timeout: 99999999S",
        "grpc-timeout: 60000m",
        "connect-timeout-ms: 60000",
    ] {
        assert_eq!(list_with(&server, enough).await.status, 200, "{enough}");
    }
    for late in ["grpc-timeout: 1n", "connect-timeout-ms: 0"] {
        let refused = list_with(&server, late).await;
        refused.assert_refused(504, "DEADLINE_EXCEEDED");
    }
}

/// Sends a body that is a file, with this encoding.
async fn send_file(server: &TestServer, encoding: &str, body: &[u8]) -> Answered {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(body).unwrap();
    let data = format!("@{}", file.path().display());
    let header = format!("content-encoding: {encoding}");
    let options = ["--header", &header, "--data-binary", &data];
    call_with(server.endpoint(), LIST, "", &options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_read_or_refused_for_its_compression() {
    let server = TestServer::start_with(&["--max-message-bytes=1000000"]).await;
    let compressed = gzip(&b"{}"[..]);
    for (encoding, body) in [
        ("gzip", &compressed[..]),
        ("GZIP", &compressed[..]),
        ("x-gzip", &compressed[..]),
        ("identity", &b"{}"[..]),
    ] {
        let listed = send_file(&server, encoding, body).await;
        assert_eq!(listed.status, 200, "{encoding}: {}", listed.body);
    }
    for encoding in ["br", "deflate", "zstd", "gzip, gzip"] {
        let refused = send_file(&server, encoding, b"{}").await;
        let error = refused.assert_refused(415, "COMPRESSION_UNSUPPORTED");
        let message = error["message"].as_str().unwrap();
        says!(message, "content-encoding", encoding, "expected gzip");
        says!(refused.headers, "accept-encoding: gzip, identity");
    }
    let broken = send_file(&server, "gzip", b"{}").await;
    let error = broken.assert_refused(400, "REQUEST_MALFORMED");
    says!(error.to_string(), "cannot be decompressed");
    let bomb = gzip(std::io::Read::take(std::io::repeat(b' '), 2_000_000));
    let refused = send_file(&server, "gzip", &bomb).await;
    let error = refused.assert_refused(429, "MESSAGE_TOO_LARGE");
    says!(error.to_string(), "--max-message-bytes");
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_in_utf_8() {
    let server = TestServer::start().await;
    for good in [
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "Application/JSON",
    ] {
        let listed = list_with(&server, &format!("content-type: {good}")).await;
        assert_eq!(listed.status, 200, "{good}");
    }
    for wrong in [
        "application/json; charset=utf-16",
        "application/json;charset=latin1",
        "application/xml",
    ] {
        let refused = list_with(&server, &format!("content-type: {wrong}")).await;
        let error = refused.assert_refused(415, "CONTENT_TYPE_UNSUPPORTED");
        says!(error.to_string(), "UTF-8", "application/json");
    }
}
