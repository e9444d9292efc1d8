//! Headers that cannot be read are refused with their name, their value and what is expected.

use std::io::Write as _;

use hlorank_tests::{attackers::messages::gzip, prelude::*};

use crate::json_calls::curl::{Answered, call, call_with};

const LIST: &str = "ModelService/ListModels";

async fn list_with(server: &TestServer, header: &str) -> Answered {
    call_with(server.endpoint(), LIST, "{}", &["--header", header]).await
}

fn assert_refused(answered: &Answered, status: u16, reason: &str, parts: &[&str]) {
    assert_eq!(answered.status, status, "{}", answered.body);
    let error = answered.json();
    assert_eq!(error["reason"], reason, "{error}");
    for part in parts {
        assert!(
            error["message"].as_str().unwrap().contains(part),
            "{part}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_cannot_be_read_is_refused() {
    let server = TestServer::start().await;
    let refused = list_with(&server, "grpc-timeout: 1ms").await;
    assert_refused(
        &refused,
        400,
        "HEADER_INVALID",
        &["grpc-timeout", "1ms", "5S or 250m"],
    );
    assert_eq!(refused.json()["fields"][0], "grpc-timeout");
    let twice = [
        "--header",
        "grpc-timeout: 5S",
        "--header",
        "grpc-timeout: 6S",
    ];
    let twice = call_with(server.endpoint(), LIST, "{}", &twice).await;
    assert_refused(&twice, 400, "HEADER_INVALID", &["5S and 6S"]);
    for good in [
        "grpc-timeout: 99999999S",
        "grpc-timeout: 60000m",
        "connect-timeout-ms: 60000",
    ] {
        assert_eq!(list_with(&server, good).await.status, 200, "{good}");
    }
    let late = list_with(&server, "connect-timeout-ms: 0").await;
    assert_refused(&late, 504, "DEADLINE_EXCEEDED", &[]);
    for wrong in [
        "connect-timeout-ms: 5S",
        "connect-timeout-ms: -1",
        "connect-timeout-ms: 12345678901",
    ] {
        assert_refused(
            &list_with(&server, wrong).await,
            400,
            "HEADER_INVALID",
            &["connect-timeout-ms", "milliseconds"],
        );
    }
    assert_refused(
        &list_with(&server, "connect-protocol-version: 2").await,
        400,
        "HEADER_INVALID",
        &["\"2\""],
    );
    let query = call(server.endpoint(), &format!("{LIST}?timeout=5"), "{}").await;
    assert_refused(
        &query,
        400,
        "HEADER_INVALID",
        &["timeout=5", "without a query"],
    );
}

/// Sends a body that is a file, with this encoding.
async fn send_file(server: &TestServer, encoding: &str, body: &[u8]) -> Answered {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(body).unwrap();
    let data = format!("@{}", file.path().display());
    let header = format!("content-encoding: {encoding}");
    call_with(
        server.endpoint(),
        LIST,
        "",
        &["--header", &header, "--data-binary", &data],
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_body_is_read_or_refused_for_its_compression() {
    let server = TestServer::start_with(&["--max-message-bytes=1000000"]).await;
    for (encoding, body) in [
        ("gzip", gzip(&b"{}"[..])),
        ("GZIP", gzip(&b"{}"[..])),
        ("x-gzip", gzip(&b"{}"[..])),
        ("identity", b"{}".to_vec()),
    ] {
        let listed = send_file(&server, encoding, &body).await;
        assert_eq!(listed.status, 200, "{encoding}: {}", listed.body);
    }
    for encoding in ["br", "deflate", "zstd", "gzip, gzip", ""] {
        let refused = send_file(&server, encoding, b"{}").await;
        if refused.status == 200 {
            // curl leaves an empty header out.
            assert_eq!(encoding, "");
            continue;
        }
        assert_refused(
            &refused,
            415,
            "COMPRESSION_UNSUPPORTED",
            &["content-encoding", encoding, "expected gzip"],
        );
        says!(refused.headers, "accept-encoding: gzip, identity");
    }
    let broken = send_file(&server, "gzip", b"{}").await;
    assert_refused(
        &broken,
        400,
        "REQUEST_MALFORMED",
        &["cannot be decompressed"],
    );
    let bomb = send_file(
        &server,
        "gzip",
        &gzip(std::io::Read::take(std::io::repeat(b' '), 2_000_000)),
    )
    .await;
    assert_refused(&bomb, 429, "MESSAGE_TOO_LARGE", &["--max-message-bytes"]);
    let of_grpc = list_with(&server, "grpc-encoding: gzip").await;
    assert_refused(
        &of_grpc,
        400,
        "HEADER_INVALID",
        &["grpc-encoding", "content-encoding"],
    );
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
        let header = format!("content-type: {good}");
        assert_eq!(list_with(&server, &header).await.status, 200, "{good}");
    }
    for wrong in [
        "application/json; charset=utf-16",
        "application/json;charset=latin1",
        "application/xml",
    ] {
        let header = format!("content-type: {wrong}");
        assert_refused(
            &list_with(&server, &header).await,
            415,
            "CONTENT_TYPE_UNSUPPORTED",
            &["UTF-8", "application/json"],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_is_given_once() {
    let server = TestServer::start().await;
    let nested = r#"{"batch": {"tileConfigs": {"configs": [{}, {"outputBounds": [1], "output_bounds": [2]}]}}}"#;
    let refused = call(server.endpoint(), "CostModelService/RankConfigs", nested).await;
    assert_refused(&refused, 400, "REQUEST_MALFORMED", &["given twice"]);
    assert_eq!(
        refused.json()["fields"][0],
        "batch.tileConfigs.configs[1].output_bounds",
        "{}",
        refused.body
    );
}
